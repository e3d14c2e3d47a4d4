//! The steps of a machine's boot: the group, start and duration of each, on the kernel's clock.
//! Processes pass them on as lines of text, and then to the edge (STREAM.md, REPORT).

const std = @import("std");
const assert = std.debug.assert;

/// The limit of a REPORT.
pub const steps_max = 24;
pub const name_size_max = 32;

pub const Group = enum(u8) { firmware, kernel, initramfs, system, unit };

pub const Step = struct {
    group: Group,
    /// µs since the kernel's start; negative for firmware.
    start_us: i64,
    duration_us: u64,
    name_buffer: [name_size_max]u8 = @splat(0),
    name_size: u8 = 0,

    /// A longer name is cut, and bytes that are not printable ASCII become `?`; it must not be
    /// empty.
    pub fn init(group: Group, name_text: []const u8, start_us: i64, duration_us: u64) Step {
        assert(name_text.len > 0);
        var step: Step = .{ .group = group, .start_us = start_us, .duration_us = duration_us };
        step.name_size = @intCast(@min(name_text.len, name_size_max));
        for (step.name_buffer[0..step.name_size], name_text[0..step.name_size]) |*kept, byte|
            kept.* = if (std.ascii.isPrint(byte)) byte else '?';
        return step;
    }

    pub fn name(step: *const Step) []const u8 {
        return step.name_buffer[0..step.name_size];
    }

    fn isBefore(_: void, a: Step, b: Step) bool {
        return a.start_us < b.start_us;
    }
};

pub const StepList = @This();

steps: [steps_max]Step = undefined,
count: u8 = 0,

/// One line for each step: group, µs of start, µs of duration, name.
pub const text_size_max = steps_max * ("initramfs".len + 1 + 20 + 1 + 20 + 1 + name_size_max + 1);

/// Steps that do not fit are dropped: the most important ones are added first.
pub fn add(list: *StepList, step: Step) void {
    if (list.count == steps_max) return;
    list.steps[list.count] = step;
    list.count += 1;
}

pub fn slice(list: *const StepList) []const Step {
    return list.steps[0..list.count];
}

/// Sorts by start; equal starts keep their order.
pub fn sort(list: *StepList) void {
    std.sort.insertion(Step, list.steps[0..list.count], {}, Step.isBefore);
}

pub fn write(list: *const StepList, buffer: *[text_size_max]u8) []const u8 {
    var writer: std.Io.Writer = .fixed(buffer);
    for (list.slice()) |*step| writer.print("{t} {d} {d} {s}\n", .{
        step.group, step.start_us, step.duration_us, step.name(),
    }) catch unreachable; // There is room for the longest of all.
    return writer.buffered();
}

/// Parses lines of `write`; any other line is an error, since only this program writes them.
pub fn parse(text: []const u8) error{Malformed}!StepList {
    var list: StepList = .{};
    var lines = std.mem.tokenizeScalar(u8, text, '\n');
    while (lines.next()) |line| {
        if (list.count == steps_max) return error.Malformed;
        var words = std.mem.splitScalar(u8, line, ' ');
        const group = std.meta.stringToEnum(Group, words.first()) orelse return error.Malformed;
        const start_us = try number(i64, words.next());
        const duration_us = try number(u64, words.next());
        const name = words.rest();
        if (name.len == 0 or name.len > name_size_max) return error.Malformed;
        list.add(.init(group, name, start_us, duration_us));
    }
    return list;
}

fn number(comptime T: type, word: ?[]const u8) error{Malformed}!T {
    return std.fmt.parseInt(T, word orelse return error.Malformed, 10) catch error.Malformed;
}

const testing = std.testing;
const base = @import("base");
const damage = @import("damaged.zig").damage;

test "steps survive a round trip through text" {
    var list: StepList = .{};
    list.add(.init(.firmware, "boot loader", -2_500_000, 2_000_000));
    list.add(
        .init(.unit, "dev-disk-by\\x2dlabel-a-very-long-name.device", 7, std.math.maxInt(u64)),
    );
    var buffer: [StepList.text_size_max]u8 = undefined;
    const parsed: StepList = try .parse(list.write(&buffer));
    try testing.expectEqual(2, parsed.count);
    try testing.expectEqualStrings("boot loader", parsed.steps[0].name());
    try testing.expectEqual(-2_500_000, parsed.steps[0].start_us);
    try testing.expectEqual(name_size_max, parsed.steps[1].name().len);
    try testing.expectEqual(std.math.maxInt(u64), parsed.steps[1].duration_us);
}

test "the longest list fits as text, and nothing is added to a full one" {
    var list: StepList = .{};
    const name: [name_size_max]u8 = @splat('n');
    for (0..steps_max + 3) |_|
        list.add(.init(.initramfs, &name, std.math.minInt(i64), std.math.maxInt(u64)));
    try testing.expectEqual(steps_max, list.count);
    var buffer: [StepList.text_size_max]u8 = undefined;
    const parsed: StepList = try .parse(list.write(&buffer));
    try testing.expectEqual(steps_max, parsed.count);
}

test "sorted steps are in order of start" {
    var list: StepList = .{};
    list.add(.init(.unit, "b", 30, 1));
    list.add(.init(.kernel, "a", -5, 1));
    list.add(.init(.unit, "c", 30, 1));
    list.sort();
    for (list.slice(), [_][]const u8{ "a", "b", "c" }) |*step, name|
        try testing.expectEqualStrings(name, step.name());
}

test "text that no target wrote is refused" {
    const line = "kernel 1 2 x\n";
    const too_many: [steps_max + 1][line.len]u8 = @splat(line.*);
    for ([_][]const u8{
        "kernel",
        "kernel 1",
        "kernel 1 2",
        "kernel 1 2 ",
        "kernel 1 -2 x",
        "colonel 1 2 x",
        "kernel 1 99999999999999999999 x",
        "kernel 1 2 123456789012345678901234567890123",
        std.mem.asBytes(&too_many),
    }) |text| try testing.expectError(error.Malformed, StepList.parse(text));
}

test "bytes that are not printable never leave the machine" {
    const step: Step = .init(.unit, "a\x1b[2Jb\xff", 0, 0);
    try testing.expectEqualStrings("a?[2Jb?", step.name());
}

test "text with any bytes is refused, or becomes steps that can be written again" {
    var prng: base.Prng = .init(2);
    var list: StepList = .{};
    list.add(.init(.firmware, "firmware", -9_250_000, 4_000_000));
    list.add(.init(.system, "load units", 5_080_762, 54_568));
    var buffer: [StepList.text_size_max]u8 = undefined;
    const whole = list.write(&buffer);
    for (0..20_000) |_| {
        var text: [128]u8 = undefined;
        @memcpy(text[0..whole.len], whole);
        damage(&prng, text[0..whole.len], " \n-0f");
        const parsed = StepList.parse(text[0..whole.len]) catch continue;
        var again: [StepList.text_size_max]u8 = undefined;
        var same: StepList = try .parse(parsed.write(&again));
        try testing.expectEqual(parsed.count, same.count);
        same.sort();
    }
}
