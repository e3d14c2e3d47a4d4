//! A signing key of the organization that a person has named on this machine (`bootfarm-edge
//! trust-key`), after the control plane was restored from a backup older than a change of its key.
//! It waits in the data directory until the next desired state is accepted, whichever key signed
//! that one: a named key never stays as a second way in.

const std = @import("std");
const core = @import("core");
const DataDir = @import("data_dir.zig");

pub const file_name = "trust-key";
const temporary_name = file_name ++ ".new";

/// Returns null if none is named, or if the file does not contain a key.
pub fn read(data: *const DataDir) ?[32]u8 {
    var buffer: [128]u8 = undefined;
    const text = data.dir.readFile(data.io, file_name, &buffer) catch return null;
    return core.uplink.key_text.parse(std.mem.trim(u8, text, " \n")) catch null;
}

/// Called by another process than the edge; writes the whole file or nothing.
pub fn write(io: std.Io, dir: std.Io.Dir, key: [32]u8) !void {
    const text = core.uplink.key_text.write(key);
    try dir.writeFile(io, .{ .sub_path = temporary_name, .data = &text });
    try dir.rename(temporary_name, dir, file_name, io);
}

pub fn forget(data: *const DataDir) void {
    data.dir.deleteFile(data.io, file_name) catch {};
}

const testing = std.testing;

test "a named key exists until it is forgotten, and a file without a key counts as none" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var buffer: [8192]u8 = undefined;
    const size = try tmp.dir.realPath(testing.io, &buffer);
    const path = try std.fmt.bufPrint(buffer[size..], "{s}/data", .{buffer[0..size]});
    var data = try DataDir.open(testing.io, path);
    defer data.close();
    try testing.expectEqual(null, read(&data));
    try write(testing.io, data.dir, @splat(1));
    try write(testing.io, data.dir, @splat(2));
    try testing.expectEqual(@as([32]u8, @splat(2)), read(&data));
    forget(&data);
    try testing.expectEqual(null, read(&data));
    try data.dir.writeFile(testing.io, .{ .sub_path = file_name, .data = "no key" });
    try testing.expectEqual(null, read(&data));
}
