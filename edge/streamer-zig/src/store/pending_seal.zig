//! The record of a layer that is being sealed (seal.zig), and the steps that follow it. It is
//! enough to finish the job: every change of a store begins with `recover`, whatever interrupted
//! the last.

const std = @import("std");
const base = @import("base");
const block = @import("block.zig");
const FileSet = @import("files/file_set.zig");
const Files = @import("files/files.zig");
const manifest_module = @import("tree/manifest.zig");
const simulated = @import("simulated.zig");
const Sha256 = base.Sha256;
const Uuid = base.Uuid;

/// Name of a layer's data file while its layer is sealed.
pub const sealed_name = "sealed";
pub const record_name = "sealing";

/// The pending change: enough to finish it.
pub const Record = struct {
    file: block.FileNumber,
    version: Uuid,
    manifest: manifest_module.Bytes,

    const magic = "BFSEAL\x00\x01".*;
    const size = magic.len + 4 + 16 + manifest_module.file_size + Sha256.digest_length;

    pub fn encode(record: *const Record) [size]u8 {
        var bytes: [size]u8 = undefined;
        var writer: base.ByteWriter = .init(&bytes);
        writer.bytes(&magic) catch unreachable;
        writer.int(u32, record.file) catch unreachable;
        writer.bytes(&record.version.bytes) catch unreachable;
        writer.bytes(&record.manifest) catch unreachable;
        Sha256.hash(writer.written(), bytes[writer.position..][0..Sha256.digest_length], .{});
        return bytes;
    }

    fn decode(bytes: *const [size]u8) ?Record {
        const end = size - Sha256.digest_length;
        var digest: [Sha256.digest_length]u8 = undefined;
        Sha256.hash(bytes[0..end], &digest, .{});
        if (!std.mem.eql(u8, &digest, bytes[end..]) or !std.mem.startsWith(u8, bytes, &magic))
            return null;
        var cursor: base.Cursor = .init(bytes[magic.len..]);
        const number = cursor.int(u32) catch unreachable;
        const file = std.math.cast(block.FileNumber, number) orelse return null;
        const version: Uuid = .fromBytes((cursor.array(16) catch unreachable).*);
        return .{
            .file = file,
            .version = version,
            .manifest = (cursor.array(manifest_module.file_size) catch unreachable).*,
        };
    }
};

/// Finishes what a crash interrupted. Every change of the store begins with this.
pub fn recover(files: Files) (Files.Error || error{RecordDamaged})!void {
    const handle = files.open(record_name, .read) catch |err|
        return if (err == error.NotFound) {} else err;
    var bytes: [Record.size]u8 = undefined;
    {
        defer files.close(handle);
        if (!try files.readWhole(handle, &bytes, 0)) return error.RecordDamaged;
    }
    try finish(files, &(Record.decode(&bytes) orelse return error.RecordDamaged));
}

/// Each step may have been done already.
pub fn finish(files: Files, record: *const Record) Files.Error!void {
    var dir_buffer: Files.Name = undefined;
    var names: [2]Files.Name = undefined;
    const dir = layerDir(record.version, &dir_buffer);
    const set: FileSet = .init(files, .extents);
    const from = std.mem.print(&names[0], "{s}/" ++ sealed_name, .{dir}) catch unreachable;
    files.rename(from, set.nameOf(record.file, &names[1])) catch |err|
        if (err != error.NotFound) return err;
    try files.syncDir(FileSet.Kind.extents.dir());
    const manifest_name = manifest_module.fileName(record.version, &names[0]);
    if (files.open(manifest_name, .read)) |there| files.close(there) else |err| {
        if (err != error.NotFound) return err;
        if (!simulated.has(.recovery_without_manifest))
            try files.replace(manifest_name, &record.manifest);
    }
    for ([_][]const u8{ "head", "head.new", "map", "sums", "removed" }) |part| {
        const name = std.mem.print(&names[0], "{s}/{s}", .{ dir, part }) catch unreachable;
        files.remove(name) catch |err| if (err != error.NotFound) return err;
    }
    files.remove(dir) catch |err| if (err != error.NotFound) return err;
    try files.syncDir("layers");
    files.remove(record_name) catch |err| if (err != error.NotFound) return err;
    try files.syncDir("");
}

/// Path below the store's directory.
pub fn layerDir(version: Uuid, into: *Files.Name) []const u8 {
    return std.mem.print(into, "layers/{f}", .{version}) catch unreachable;
}

const testing = std.testing;

test "a record is decoded as it was encoded, and every flipped bit of it is found" {
    const record: Record = .{
        .file = 0x123456,
        .version = .fromBytes(@splat(7)),
        .manifest = @splat(9),
    };
    var bytes = record.encode();
    try testing.expectEqualDeep(record, Record.decode(&bytes).?);
    for (0..bytes.len * 8) |bit| {
        const flip = @as(u8, 1) << @intCast(bit % 8);
        bytes[bit / 8] ^= flip;
        try testing.expectEqual(null, Record.decode(&bytes));
        bytes[bit / 8] ^= flip;
    }
}
