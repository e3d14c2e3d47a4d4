//! What init.sh wrote down of its own start, as steps. Each of its lines is the name of a stage and
//! when the stage ended, in seconds since the kernel's start with two digits after the point, as
//! /proc/uptime has them: `network 2.31`.

const std = @import("std");
const step_list = @import("step_list.zig");
const StepList = step_list.StepList;

/// The stage that ends when init.sh begins.
pub const kernel_stage = "kernel";
/// Stages that are taken; init.sh has fewer.
const stages_max = 9;
/// A start that takes longer has no steps that anyone wants to see.
const instant_us_max = 24 * std.time.us_per_hour;

/// Adds the stages as steps that follow each other, and returns when the last one ended in µs since
/// the kernel's start. Lines that are not as described, or go back in time, are left out.
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
            .init(if (is_kernel) .kernel else .initramfs, stage, @intCast(end_us), instant_us - end_us),
        );
        end_us = instant_us;
        stages += 1;
    }
    return end_us;
}

/// Seconds with two digits after the point, as µs.
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

test "instants become steps that follow each other from the kernel's start" {
    var list: StepList = .{};
    try testing.expectEqual(
        2_310_000,
        addSteps(&list, "kernel 0.82\ndrivers 1.30\nnetwork 2.31\n"),
    );
    const expected = [_]step_list.Step{
        .init(.kernel, "kernel", 0, 820_000),
        .init(.initramfs, "drivers", 820_000, 480_000),
        .init(.initramfs, "network", 1_300_000, 1_010_000),
    };
    try testing.expectEqualSlices(step_list.Step, &expected, list.slice());
}

test "lines that were cut or go back in time are left out" {
    var list: StepList = .{};
    const text = "kernel 0.82\nnetwork\nno 0.1\n 0.90\nbefore 0.50\nfar 99999999.00\ndisk -1.00\nroot 1.00\nover 1.";
    try testing.expectEqual(1_000_000, addSteps(&list, text));
    try testing.expectEqual(2, list.count);
    try testing.expectEqualStrings("root", list.steps[1].name());
    try testing.expectEqual(0, addSteps(&list, ""));
}

test "a file that never ends adds a bounded number of steps" {
    var list: StepList = .{};
    var text: [8 * 1000]u8 = undefined;
    for (0..1000) |index| text[index * 8 ..][0..8].* = "s 01.00\n".*;
    _ = addSteps(&list, &text);
    try testing.expectEqual(stages_max, list.count);
}

test "a file with any bytes adds steps that follow each other" {
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
