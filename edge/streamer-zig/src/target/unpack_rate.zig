//! Whether this machine takes packed answers: only if it unpacks faster than its network delivers.
//! Measured once, in 2 ms, before its first packet.

const std = @import("std");
const core = @import("core");
const lz4 = @import("codec").lz4;
const sys = @import("host").sys;
const linux = std.os.linux;

const Codec = core.target.options.Codec;

/// Where the kernel says nothing else, as in virtual machines.
const usual_mbit = 1000;
/// Unpacking must be so much faster than the network: the processor boots a system meanwhile.
const times_faster = 2;
const measure_us = 2 * std.time.us_per_ms;

/// The codecs that HELLO names.
pub fn codecsOf(choice: Codec) u8 {
    return switch (choice) {
        .off => 0,
        .lz4 => core.stream.Client.codecs,
        .auto => if (isFaster(unpackMbit(), linkMbit("/sys/class/net")))
            core.stream.Client.codecs
        else
            0,
    };
}

fn isFaster(unpack_mbit: u64, link_mbit: u64) bool {
    return unpack_mbit >= link_mbit * times_faster;
}

/// Speed of the fastest card that has a link.
fn linkMbit(path: [*:0]const u8) u64 {
    var fastest: u64 = 0;
    const flags: linux.O = .{ .DIRECTORY = true, .CLOEXEC = true };
    const fd: i32 = @intCast(sys.check(linux.open(path, flags, 0)) catch return usual_mbit);
    defer sys.close(fd);
    var buffer: [4096]u8 align(8) = undefined;
    while (true) {
        const size = sys.check(linux.getdents64(fd, &buffer, buffer.len)) catch break;
        if (size == 0) break;
        var at: usize = 0;
        while (at < size) {
            const entry: *align(1) const linux.dirent64 = @ptrCast(&buffer[at]);
            const name = std.mem.sliceTo(@as([*:0]const u8, @ptrCast(&entry.name)), 0);
            at += entry.reclen;
            fastest = @max(fastest, speedOf(fd, name) orelse continue);
        }
    }
    return if (fastest == 0) usual_mbit else fastest;
}

/// Null: no card, no link, or none that has a speed.
fn speedOf(dir_fd: i32, name: []const u8) ?u64 {
    if (name.len == 0 or name[0] == '.') return null;
    var path_buffer: [300]u8 = undefined;
    const path = std.mem.print(&path_buffer, "{s}/speed\x00", .{name}) catch return null;
    const text_path: [*:0]const u8 = @ptrCast(path.ptr);
    const fd: i32 =
        @intCast(sys.check(linux.openat(dir_fd, text_path, .{ .CLOEXEC = true }, 0)) catch
            return null);
    defer sys.close(fd);
    var text: [32]u8 = undefined;
    const size = sys.check(linux.read(fd, &text, text.len)) catch return null;
    return parseSpeed(text[0..size]);
}

fn parseSpeed(text: []const u8) ?u64 {
    const speed = std.fmt.parseInt(i64, std.mem.trim(u8, text, " \n"), 10) catch return null;
    return if (speed > 0) @intCast(speed) else null;
}

const sample_size = 32 << 10;

fn unpackMbit() u64 {
    var sample: [sample_size]u8 = undefined;
    var packed_up: [lz4.sizeMax(sample_size)]u8 = undefined;
    fillSample(&sample);
    var table: lz4.Table = undefined;
    const size = lz4.pack(&table, &packed_up, &sample).?;
    const begun_us = sys.monotonicUs();
    var bytes: u64 = 0;
    var took_us: u64 = 0;
    while (took_us < measure_us) {
        lz4.unpack(&sample, packed_up[0..size]) catch unreachable;
        bytes += sample.len;
        took_us = sys.monotonicUs() - begun_us;
    }
    return bytes * 8 / took_us;
}

/// Shrinks to about a half, in short matches, like a program.
fn fillSample(sample: *[sample_size]u8) void {
    var state: u32 = 1;
    var at: usize = 0;
    while (at < sample.len) {
        state = state *% 1664525 +% 1013904223;
        const size = @min(sample.len - at, 4 + (state >> 28));
        const is_repeat = at > 1024 and state & 0x800 != 0;
        const back = 16 + (state >> 12 & 0x3ff);
        for (sample[at..][0..size], 0..) |*byte, index| {
            state = state *% 1664525 +% 1013904223;
            byte.* = if (is_repeat) sample[at + index - back] else @truncate(state >> 24);
        }
        at += size;
    }
}

const testing = std.testing;

test "a machine that unpacks at twice the speed of its network takes packed answers" {
    try testing.expect(isFaster(12_800, 1000));
    try testing.expect(isFaster(2000, 1000));
    try testing.expect(!isFaster(1999, 1000));
    try testing.expect(!isFaster(12_800, 10_000));
    try testing.expectEqual(0, codecsOf(.off));
    try testing.expectEqual(core.stream.Client.codecs, codecsOf(.lz4));
}

test "a card without a speed is none" {
    try testing.expectEqual(2500, parseSpeed("2500\n"));
    try testing.expectEqual(null, parseSpeed("-1\n"));
    try testing.expectEqual(null, parseSpeed(""));
    try testing.expectEqual(usual_mbit, linkMbit("/nowhere"));
    try testing.expect(linkMbit("/sys/class/net") > 0);
}

test "the sample shrinks like a program, and this machine unpacks it at some speed" {
    var sample: [sample_size]u8 = undefined;
    fillSample(&sample);
    var table: lz4.Table = undefined;
    var out: [lz4.sizeMax(sample_size)]u8 = undefined;
    const size = lz4.pack(&table, &out, &sample).?;
    try testing.expect(size > sample_size / 3 and size < sample_size * 3 / 4);
    try testing.expect(unpackMbit() > 10);
}
