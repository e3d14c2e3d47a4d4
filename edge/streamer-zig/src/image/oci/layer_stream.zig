//! A layer as the stream of its tar archive: plain, gzip (one or more members) or zstd, recognized
//! by content. Its packed and unpacked bytes are checked against their digests at the end, and the
//! unpacked ones are counted against a limit, so that a small layer cannot unpack without end.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const Fault = @import("fault.zig").Fault;
const FileReader = @import("file_reader.zig");
const Sha256 = base.Sha256;
const Reader = std.Io.Reader;
const ImageSource = store.image_source.ImageSource;
const flate = std.compress.flate;
const zstd = std.compress.zstd;

pub const Digest = [Sha256.digest_length]u8;

/// Where the packed bytes are, and what they are.
pub const Blob = struct {
    source: ImageSource,
    first: u64,
    size: u64,
    /// Of the packed bytes; null where a list has none (docker save before version 25).
    digest: ?Digest,
    /// Of the unpacked bytes.
    diff_id: Digest,
};

/// zstd's default; larger windows are for `--ultra` and `--long`.
const zstd_window = zstd.default_window_len;
/// A block of zstd has to fit.
const file_buffer_size = 256 << 10;
const out_buffer_size = 256 << 10;

/// Large, must not move.
pub const LayerStream = @This();

blob: Blob,
file: FileReader,
file_buffer: [file_buffer_size]u8,
out_buffer: [out_buffer_size]u8,
window: [zstd_window + zstd.block_size_max]u8,
form: union(enum) { plain, gzip: flate.Decompress, zstd: zstd.Decompress },
sha: Sha256,
unpacked: u64,
unpacked_max: u64,
/// Why a read has failed.
fault: ?Fault,
/// The unpacked bytes.
interface: Reader,

pub fn open(layer: *LayerStream, blob: *const Blob, unpacked_max: u64) Fault!void {
    layer.blob = blob.*;
    layer.file = .init(
        blob.source,
        .{ .first = blob.first, .size = blob.size },
        Sha256.init(.{}),
        &layer.file_buffer,
    );
    layer.sha = .init(.{});
    layer.unpacked = 0;
    layer.unpacked_max = unpacked_max;
    layer.fault = null;
    layer.interface = .{
        .vtable = &.{ .stream = stream },
        .buffer = &layer.out_buffer,
        .seek = 0,
        .end = 0,
    };
    const input = &layer.file.interface;
    const head = input.peekGreedy(4) catch |err| switch (err) {
        error.EndOfStream => "",
        error.ReadFailed => return error.ReadFailed,
    };
    layer.form = if (std.mem.startsWith(u8, head, "\x1f\x8b"))
        .{ .gzip = .init(input, .gzip, layer.window[0..flate.max_window_len]) }
    else if (isZstd(head))
        .{ .zstd = .init(input, &layer.window, .{ .window_len = zstd_window }) }
    else
        .plain;
}

/// A frame, or one to be skipped, in which zstd:chunked keeps its table.
fn isZstd(head: []const u8) bool {
    if (head.len < 4) return false;
    const magic = std.mem.readInt(u32, head[0..4], .little);
    return magic == 0xfd2fb528 or magic & 0xfffffff0 == 0x184d2a50;
}

/// The fault behind an error of the stream.
pub fn faultOf(layer: *const LayerStream, seen: Fault) Fault {
    return layer.fault orelse seen;
}

/// Reads to the end and checks both digests.
pub fn finish(layer: *LayerStream) Fault!void {
    _ = layer.interface.discardRemaining() catch return layer.faultOf(error.ReadFailed);
    _ = layer.file.interface.discardRemaining() catch return error.ReadFailed;
    var packed_sha = layer.file.sha.?;
    if (layer.blob.digest) |digest| {
        if (!std.mem.eql(u8, &digest, &packed_sha.finalResult())) return error.DigestWrong;
    }
    if (!std.mem.eql(u8, &layer.blob.diff_id, &layer.sha.finalResult()))
        return error.DigestWrong;
}

fn stream(reader: *Reader, writer: *std.Io.Writer, limit: std.Io.Limit) Reader.StreamError!usize {
    const layer: *LayerStream = @alignCast(@fieldParentPtr("interface", reader));
    const wanted = limit.slice(try writer.writableSliceGreedy(1));
    const count = layer.pull(wanted) catch |fault| {
        layer.fault = fault;
        return error.ReadFailed;
    };
    if (count == 0) return error.EndOfStream;
    layer.unpacked += count;
    if (layer.unpacked > layer.unpacked_max) {
        layer.fault = error.UnpackedTooLarge;
        return error.ReadFailed;
    }
    layer.sha.update(wanted[0..count]);
    writer.advance(count);
    return count;
}

/// Returns 0 at the end.
fn pull(layer: *LayerStream, buffer: []u8) Fault!usize {
    const input = &layer.file.interface;
    switch (layer.form) {
        .plain => return input.readSliceShort(buffer) catch error.ReadFailed,
        .zstd => |*unpack| return unpack.reader.readSliceShort(buffer) catch error.LayerDamaged,
        .gzip => |*unpack| while (true) {
            const count = unpack.reader.readSliceShort(buffer) catch return error.LayerDamaged;
            if (count > 0) return count;
            // Another member may follow (eStargz); zeros are padding.
            const head = input.peekGreedy(2) catch |err| switch (err) {
                error.EndOfStream => return 0,
                error.ReadFailed => return error.ReadFailed,
            };
            if (!std.mem.startsWith(u8, head, "\x1f\x8b")) {
                if (!std.mem.allEqual(u8, head, 0)) return error.LayerDamaged;
                return 0;
            }
            unpack.* = .init(input, .gzip, layer.window[0..flate.max_window_len]);
        },
    }
}
