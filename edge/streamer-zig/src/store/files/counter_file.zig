//! The highest counter that a store has assigned to a version, in its own file: a damaged manifest
//! does not prevent new versions, and the counter of a deleted version is not reused. If the file
//! is damaged or missing, all manifests are read instead.

const std = @import("std");
const base = @import("base");
const Files = @import("files.zig");
const Sha256 = base.Sha256;

pub const name = "counter";
const magic = "BFCOUNT1".*;
const size = magic.len + 8 + Sha256.digest_length;

/// Null if unknown.
pub fn read(files: Files) Files.Error!?u64 {
    const handle = files.open(name, .read) catch |err|
        return if (err == error.NotFound) null else err;
    defer files.close(handle);
    var bytes: [size]u8 = undefined;
    return if (try files.readWhole(handle, &bytes, 0)) decode(&bytes) else null;
}

fn decode(bytes: *const [size]u8) ?u64 {
    const counter = std.mem.readInt(u64, bytes[magic.len..][0..8], .little);
    return if (std.mem.eql(u8, bytes, &encode(counter))) counter else null;
}

/// Durable on return. Requires the store's lock.
pub fn write(files: Files, counter: u64) Files.Error!void {
    try files.replace(name, &encode(counter));
}

fn encode(counter: u64) [size]u8 {
    var bytes: [size]u8 = undefined;
    bytes[0..magic.len].* = magic;
    std.mem.writeInt(u64, bytes[magic.len..][0..8], counter, .little);
    const end = size - Sha256.digest_length;
    Sha256.hash(bytes[0..end], bytes[end..], .{});
    return bytes;
}

const testing = std.testing;
const LinuxFiles = @import("linux_files.zig");

test "a counter is read as written, and every flipped bit of it is found" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const files = on.files();
    try testing.expectEqual(null, try read(files));
    try write(files, 7);
    try write(files, 9);
    try testing.expectEqual(9, (try read(files)).?);
    const bytes = encode(9);
    for (0..size * 8) |bit| {
        var damaged = bytes;
        damaged[bit / 8] ^= @as(u8, 1) << @intCast(bit % 8);
        try testing.expectEqual(null, decode(&damaged));
    }
    try files.replace(name, bytes[0 .. size - 1]);
    try testing.expectEqual(null, try read(files));
}
