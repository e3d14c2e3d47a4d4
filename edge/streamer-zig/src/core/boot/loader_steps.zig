//! When the loader did what: its own DHCP exchange, and its downloads of the script, the kernel and
//! the initramfs. Between them it computes, asks somebody or stands still: the boot's critical path
//! names each of these spans (`loaderSteps` in packages/proto/UPLINK.md). Fed by boot.zig; bounded
//! to one step of each name. It explains, and decides nothing.

const std = @import("std");
const LoaderFile = @import("assignment.zig").LoaderFile;
const assert = std.debug.assert;

pub const LoaderSteps = @This();

pub const Name = enum(u8) {
    dhcp,
    script,
    kernel,
    initrd,
    other,

    pub const count = @typeInfo(Name).@"enum".field_names.len;

    /// Null: it is no download.
    fn of(file: LoaderFile) ?Name {
        return switch (file) {
            .script => .script,
            .kernel => .kernel,
            .initrd => .initrd,
            .other => .other,
            .start => null,
        };
    }
};

/// µs since the boot's start.
pub const Step = struct { start_us: u64, end_us: ?u64 = null };

/// By name; from the first request to the last byte, also if a file is requested again.
steps: [Name.count]?Step = @splat(null),
/// When the script last reached the start of the kernel; null: it has not, or cannot say so.
boot_command_us: ?u64 = null,
/// Its file was delivered: the next request is another attempt.
boot_command_ended: bool = false,

/// A packet of the loader's own DHCP exchange, which precedes its downloads.
pub fn onDhcp(loader: *LoaderSteps, at_us: u64) void {
    for (&loader.steps, 0..) |*slot, index|
        if (index != @backingInt(Name.dhcp) and slot.* != null) return;
    loader.begin(.dhcp, at_us);
    loader.end(.dhcp, at_us);
    assert(loader.steps[@backingInt(Name.dhcp)].?.end_us != null);
}

pub fn onRequest(loader: *LoaderSteps, file: LoaderFile, at_us: u64) void {
    const name = Name.of(file) orelse {
        // By TFTP, the first acknowledgement counts as a request, too.
        if (loader.boot_command_us == null or loader.boot_command_ended)
            loader.boot_command_us = at_us;
        loader.boot_command_ended = false;
        return;
    };
    loader.begin(name, at_us);
}

/// Its last byte is acknowledged.
pub fn onEnd(loader: *LoaderSteps, file: LoaderFile, at_us: u64) void {
    const name = Name.of(file) orelse {
        loader.boot_command_ended = true;
        return;
    };
    loader.end(name, at_us);
}

fn begin(loader: *LoaderSteps, name: Name, at_us: u64) void {
    const slot = &loader.steps[@backingInt(name)];
    if (slot.* == null) slot.* = .{ .start_us = at_us };
    assert(slot.* != null);
}

/// A download's end may be reported late, and before others.
fn end(loader: *LoaderSteps, name: Name, at_us: u64) void {
    const step = if (loader.steps[@backingInt(name)]) |*known| known else return;
    step.end_us = @max(at_us, step.end_us orelse step.start_us);
    assert(step.end_us.? >= step.start_us);
}

const testing = std.testing;

test "a loader's exchange and downloads have a start and an end each" {
    var loader: LoaderSteps = .{};
    loader.onDhcp(100);
    loader.onDhcp(400);
    loader.onRequest(.script, 500);
    loader.onEnd(.script, 600);
    // Another exchange, as after a menu, is not the one that began it.
    loader.onDhcp(700);
    loader.onRequest(.kernel, 800);
    try testing.expectEqual(Step{ .start_us = 100, .end_us = 400 }, loader.steps[0].?);
    try testing.expectEqual(Step{ .start_us = 500, .end_us = 600 }, loader.steps[1].?);
    try testing.expectEqual(Step{ .start_us = 800 }, loader.steps[2].?);
    try testing.expectEqual(null, loader.steps[3]);
}

test "the last request before a kernel is its start, and no download" {
    var loader: LoaderSteps = .{};
    loader.onRequest(.start, 100);
    loader.onRequest(.start, 104);
    try testing.expectEqual(100, loader.boot_command_us.?);
    loader.onEnd(.start, 110);
    loader.onRequest(.start, 200);
    try testing.expectEqual(200, loader.boot_command_us.?);
    for (loader.steps) |step| try testing.expectEqual(null, step);
}

test "a file that is requested again prolongs its step, and no end precedes its start" {
    var loader: LoaderSteps = .{};
    loader.onEnd(.initrd, 5);
    try testing.expectEqual(null, loader.steps[@backingInt(Name.initrd)]);
    loader.onRequest(.initrd, 100);
    loader.onEnd(.initrd, 90);
    loader.onRequest(.initrd, 300);
    try testing.expectEqual(Step{ .start_us = 100, .end_us = 100 }, loader.steps[3].?);
    loader.onEnd(.initrd, 400);
    loader.onEnd(.initrd, 350);
    try testing.expectEqual(Step{ .start_us = 100, .end_us = 400 }, loader.steps[3].?);
}
