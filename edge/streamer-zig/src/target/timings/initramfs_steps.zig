//! Turns init.sh's notes on its own progress into steps. Each line has the name of a stage and the
//! time of its end in seconds since the kernel's start with two decimals, as in /proc/uptime:
//! `network 2.31`.

const std = @import("std");
const StepList = @import("step_list.zig");

/// The stage that ends when init.sh starts.
const kernel_stage = "kernel";
/// Limit of stages; init.sh has fewer.
const stages_max = 9;
/// Steps of a longer boot are of no interest.
const instant_us_max = 24 * std.time.us_per_hour;

/// Adds the stages as consecutive steps, and returns when the last one ended in µs since the
/// kernel's start. Skips malformed lines and those that go back in time.
pub fn addSteps(list: *StepList, text: []const u8) u64 {
    var end_us: u64 = 0;
    var stages: usize = 0;
    var lines = std.mem.tokenizeScalar(u8, text, '\n');
    while (lines.next()) |line| {
        if (stages == stages_max) break;
        const stage, const instant = std.mem.cutScalar(u8, line, ' ') orelse continue;
        if (stage.len == 0) continue;
        const instant_us = parseSeconds(instant) orelse continue;
        if (instant_us < end_us or instant_us > instant_us_max) continue;
        const is_kernel = std.mem.eql(u8, stage, kernel_stage);
        list.add(
            .init(
                if (is_kernel) .kernel else .initramfs,
                stage,
                @intCast(end_us),
                instant_us - end_us,
            ),
        );
        end_us = instant_us;
        stages += 1;
    }
    return end_us;
}

/// Seconds with two decimals, as µs.
fn parseSeconds(text: []const u8) ?u64 {
    const seconds, const hundredths = std.mem.cutScalar(u8, text, '.') orelse return null;
    if (hundredths.len != 2) return null;
    const whole = std.fmt.parseInt(u32, seconds, 10) catch return null;
    const part = std.fmt.parseInt(u8, hundredths, 10) catch return null;
    return @as(u64, whole) * std.time.us_per_s + @as(u64, part) * 10 * std.time.us_per_ms;
}

const testing = std.testing;
const base = @import("base");
const damage = @import("damaged.zig").damage;

test "instants become consecutive steps from the kernel's start" {
    var list: StepList = .{};
    try testing.expectEqual(
        2_310_000,
        addSteps(&list, "kernel 0.82\ndrivers 1.30\nnetwork 2.31\n"),
    );
    const expected = [_]StepList.Step{
        .init(.kernel, "kernel", 0, 820_000),
        .init(.initramfs, "drivers", 820_000, 480_000),
        .init(.initramfs, "network", 1_300_000, 1_010_000),
    };
    try testing.expectEqualSlices(StepList.Step, &expected, list.slice());
}

test "lines that were cut or go back in time are skipped" {
    var list: StepList = .{};
    const text =
        "kernel 0.82\nnetwork\nno 0.1\n 0.90\nbefore 0.50\nfar 99999999.00\ndisk -1.00\nroot 1.00\nover 1.";
    try testing.expectEqual(1_000_000, addSteps(&list, text));
    try testing.expectEqual(2, list.count);
    try testing.expectEqualStrings("root", list.steps[1].name());
    try testing.expectEqual(0, addSteps(&list, ""));
}

test "an endless file adds a bounded number of steps" {
    var list: StepList = .{};
    var text: [8 * 1000]u8 = undefined;
    for (0..1000) |index| text[index * 8 ..][0..8].* = "s 01.00\n".*;
    _ = addSteps(&list, &text);
    try testing.expectEqual(stages_max, list.count);
}

test "a file with any bytes adds consecutive steps" {
    var prng: base.Prng = .init(4);
    const whole = "kernel 0.82\ndrivers 1.30\nnetwork 2.31\ndisk 2.40\nroot 2.71\n";
    for (0..20_000) |_| {
        var text = whole.*;
        damage(&prng, &text, " .\n9-");
        var list: StepList = .{};
        const end_us = addSteps(&list, &text);
        var at_us: u64 = 0;
        for (list.slice()) |*step| {
            try testing.expectEqual(at_us, @as(u64, @intCast(step.start_us)));
            at_us += step.duration_us;
        }
        try testing.expectEqual(end_us, at_us);
    }
}
