//! Writes like a guest: pieces of one size, sequential or random, several in flight, with flushes
//! as file systems send them. Each piece is read back at the end of its case and compared.

const std = @import("std");
const base = @import("base");
const NbdDevice = @import("nbd_device.zig").NbdDevice;
const nowUs = @import("nbd_device.zig").nowUs;
const Prng = base.Prng;

/// Like a file system with write-back: flushes after this many bytes.
const flush_interval = 8 << 20;
const compared_max = 64;

const Case = struct {
    name: []const u8,
    piece: u32,
    is_random: bool,
    /// This part of all the bytes that the caller requests.
    share: u32 = 1,
    /// Flushes after each piece, like a database or a package manager.
    flushes_always: bool = false,
};

const cases = [_]Case{
    .{ .name = "sequential 64 KiB", .piece = 64 << 10, .is_random = false },
    .{ .name = "sequential 4 KiB", .piece = 4 << 10, .is_random = false, .share = 4 },
    .{ .name = "random 64 KiB", .piece = 64 << 10, .is_random = true },
    .{ .name = "random 32 KiB", .piece = 32 << 10, .is_random = true, .share = 2 },
    .{ .name = "random 4 KiB", .piece = 4 << 10, .is_random = true, .share = 8 },
    .{
        .name = "random 4 KiB, each flushed",
        .piece = 4 << 10,
        .is_random = true,
        .share = 256,
        .flushes_always = true,
    },
};

/// Prints one line of JSON with the time of each case; the largest writes `bytes`.
pub fn measure(device: *NbdDevice, bytes: u64, out: *std.Io.Writer) !void {
    try out.writeAll("{\"cases\":[");
    for (cases, 0..) |case, number| {
        const count = bytes / case.share / case.piece;
        const us, const flushes = try run(device, &case, number, count);
        if (number > 0) try out.writeAll(",");
        try out.print("{{\"name\":\"{s}\",\"bytes\":{d},\"us\":{d},\"flushes\":{d}}}", .{
            case.name, count * case.piece, us, flushes,
        });
    }
    try out.writeAll("]}\n");
}

fn run(device: *NbdDevice, case: *const Case, number: usize, count: u64) !struct { u64, u64 } {
    var buffer: [64 << 10]u8 = undefined;
    const piece = buffer[0..case.piece];
    const places = device.size / case.piece;
    var prng: Prng = .init(number);
    prng.fill(piece);
    var flushes: u64 = 0;
    var unflushed: u64 = 0;
    const begin_us = nowUs();
    for (0..count) |index| {
        const place = placeOf(case, number, index, places);
        stamp(piece, place, number);
        try device.write(piece, place * case.piece);
        unflushed += case.piece;
        if (!case.flushes_always and unflushed < flush_interval) continue;
        try device.flush();
        flushes += 1;
        unflushed = 0;
    }
    try device.flush();
    const us = nowUs() - begin_us;
    var found: [64 << 10]u8 = undefined;
    for (0..@min(count, compared_max)) |step| {
        const place = placeOf(case, number, step * count / @min(count, compared_max), places);
        stamp(piece, place, number);
        try device.read(found[0..case.piece], place * case.piece);
        if (!std.mem.eql(u8, piece, found[0..case.piece])) return error.OtherBytesReadThanWritten;
    }
    return .{ us, flushes + 1 };
}

fn placeOf(case: *const Case, number: usize, index: u64, places: u64) u64 {
    if (!case.is_random) return index % places;
    return base.mix(index, number) % places;
}

/// Makes the pieces of all places and cases different.
fn stamp(piece: []u8, place: u64, number: usize) void {
    std.mem.writeInt(u64, piece[0..8], place, .little);
    std.mem.writeInt(u64, piece[8..16], number, .little);
}
