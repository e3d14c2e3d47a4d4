//! A write layer as one file, to keep it elsewhere and to bring it back (docs/guides/
//! write-caches.md): two sectors, then pieces of the disk in the order of their places, then an
//! end. Each piece has a checksum over everything before it, so that nothing can be changed, left
//! out, moved or cut off unnoticed.
//!
//!     offset  size  field
//!          0     8  "BFCACHE\0"
//!          8     4  format, 1
//!         12   468  zeros
//!        480    32  SHA-256 of this sector before, and of the next one
//!        512   512  the head of the layer (head.zig): class, device, version, its root, size
//!
//!     piece         8  first block of 4 KiB
//!                   4  number of blocks, at most 256; 0: the end
//!                   4  1: the bytes follow; 0: they are zeros
//!                  32  SHA-256 of the checksum before, these 16 bytes, and the bytes
//!                      the bytes: whole blocks, zeros behind the end of the disk
//!
//! Numbers are little-endian. `first block` of the end is the number of all blocks.

const std = @import("std");
const base = @import("base");
const BlockSource = @import("../block_source.zig");
const Files = @import("../files/files.zig");
const layer_head = @import("head.zig");
const LayerMap = @import("map.zig");
const LayerSnapshot = @import("snapshot.zig");
const WriteLayer = @import("write_layer.zig");
const assert = std.debug.assert;

const block_size = LayerMap.block_size;
const piece_blocks = LayerSnapshot.piece_blocks;
const piece_size = piece_blocks * block_size;
const magic = "BFCACHE\x00".*;
const format = 1;

const Digest = [32]u8;

const Piece = extern struct {
    block: [8]u8,
    count: [4]u8,
    has_bytes: [4]u8,

    fn of(block: u64, count: u32, has_bytes: bool) Piece {
        var piece: Piece = undefined;
        std.mem.writeInt(u64, &piece.block, block, .little);
        std.mem.writeInt(u32, &piece.count, count, .little);
        std.mem.writeInt(u32, &piece.has_bytes, @intFromBool(has_bytes), .little);
        return piece;
    }

    fn digest(piece: *const Piece, before: *const Digest, bytes: []const u8) Digest {
        var hash: base.Sha256 = .init(.{});
        hash.update(before);
        hash.update(std.mem.asBytes(piece));
        hash.update(bytes);
        return hash.finalResult();
    }
};

pub const Progress = struct {
    context: *anyopaque,
    /// `done` of `size` bytes of the disk; returns false to stop.
    call: *const fn (context: *anyopaque, done: u64, size: u64) bool,
};

/// What went through.
pub const Contents = struct { head: layer_head.Head, blocks: u64 };

/// `InUse`: its device runs. `Rotten`: a block has changed on the disk, at `rotten_at`.
pub const ExportError = LayerSnapshot.OpenError || LayerSnapshot.Error ||
    error{ Canceled, WriteFailed };

/// Writes the layer in `dir`; nobody opens it meanwhile. `rotten_at` is set with `Rotten`.
pub fn exportLayer(
    gpa: std.mem.Allocator,
    files: Files,
    dir: []const u8,
    into: *std.Io.Writer,
    progress: Progress,
    rotten_at: *u64,
) ExportError!Contents {
    var whole: LayerSnapshot = try .openWhole(gpa, files, dir);
    defer whole.close();
    defer rotten_at.* = whole.rotten_at;
    const disk_size = whole.head.binding.disk_size;
    var exporting: Export = try .begin(into, &whole.head);
    while (try whole.read()) {
        try exporting.add(&(try whole.take()).?);
        if (!progress.call(progress.context, @min(whole.at * block_size, disk_size), disk_size))
            return error.Canceled;
    }
    return .{ .head = whole.head, .blocks = try exporting.end() };
}

/// Writes a file, piece by piece.
pub const Export = struct {
    into: *std.Io.Writer,
    before: Digest,
    blocks: u64 = 0,

    pub fn begin(into: *std.Io.Writer, head: *const layer_head.Head) error{WriteFailed}!Export {
        var first: [layer_head.size]u8 = @splat(0);
        first[0..8].* = magic;
        std.mem.writeInt(u32, first[8..12], format, .little);
        const second = layer_head.emit(head);
        const digest = headDigest(&first, &second);
        first[layer_head.size - 32 ..].* = digest;
        try into.writeAll(&first);
        try into.writeAll(&second);
        return .{ .into = into, .before = digest };
    }

    /// Pieces come in the order of their places.
    pub fn add(exporting: *Export, piece: *const LayerSnapshot.Piece) error{WriteFailed}!void {
        const count: u32 = @intCast(@divExact(piece.bytes.len, block_size));
        try exporting.write(piece.block, count, piece.bytes);
        exporting.blocks += count;
    }

    /// Returns the number of blocks.
    pub fn end(exporting: *Export) error{WriteFailed}!u64 {
        try exporting.write(exporting.blocks, 0, "");
        return exporting.blocks;
    }

    fn write(
        exporting: *Export,
        block: u64,
        count: u32,
        bytes: []const u8,
    ) error{WriteFailed}!void {
        assert(count <= piece_blocks);
        const written = if (std.mem.allEqual(u8, bytes, 0)) "" else bytes;
        const piece: Piece = .of(block, count, written.len > 0);
        exporting.before = piece.digest(&exporting.before, written);
        try exporting.into.writeAll(std.mem.asBytes(&piece));
        try exporting.into.writeAll(&exporting.before);
        try exporting.into.writeAll(written);
    }
};

fn headDigest(first: *const [layer_head.size]u8, second: *const [layer_head.size]u8) Digest {
    var hash: base.Sha256 = .init(.{});
    hash.update(first[0 .. layer_head.size - 32]);
    hash.update(second);
    return hash.finalResult();
}

/// `NotACache`: the file is none. `NewerFile`: a later release has made it. `DamagedFile`: it was
/// changed, or cut off.
pub const ImportError = WriteLayer.OpenError || WriteLayer.WriteError ||
    error{ NotACache, NewerFile, DamagedFile, Canceled, ReadFileFailed };

/// Reads the head of a file.
pub const FileHead = struct {
    head: layer_head.Head,
    digest: Digest,

    pub fn take(from: *std.Io.Reader) ImportError!FileHead {
        var first: [layer_head.size]u8 = undefined;
        var second: [layer_head.size]u8 = undefined;
        fill(from, &first) catch |err|
            return if (err == error.DamagedFile) error.NotACache else err;
        if (!std.mem.eql(u8, first[0..8], &magic)) return error.NotACache;
        if (std.mem.readInt(u32, first[8..12], .little) != format) return error.NewerFile;
        try fill(from, &second);
        const digest = headDigest(&first, &second);
        if (!std.mem.eql(u8, first[layer_head.size - 32 ..], &digest)) return error.DamagedFile;
        const head = layer_head.parse(&second) catch |err| return switch (err) {
            error.NewerFormat => error.NewerFile,
            error.Damaged => error.DamagedFile,
        };
        return .{ .head = head, .digest = digest };
    }
};

/// The pieces behind the head of a file, each compared with its checksum before it counts.
pub const PieceReader = struct {
    from: *std.Io.Reader,
    buffer: []u8,
    before: Digest,
    block_count: u64,
    /// Blocks so far.
    done: u64 = 0,
    /// The block behind the last piece.
    at: u64 = 0,

    pub fn init(
        gpa: std.mem.Allocator,
        from: *std.Io.Reader,
        found: *const FileHead,
    ) error{OutOfMemory}!PieceReader {
        return .{
            .from = from,
            .buffer = try gpa.alloc(u8, piece_size),
            .before = found.digest,
            .block_count = LayerMap.blockCount(found.head.binding.disk_size),
        };
    }

    pub fn deinit(reader: *PieceReader, gpa: std.mem.Allocator) void {
        gpa.free(reader.buffer);
        reader.* = undefined;
    }

    /// Returns whole blocks, valid until the next call; null at the end.
    pub fn next(
        reader: *PieceReader,
    ) error{ DamagedFile, ReadFileFailed }!?LayerSnapshot.Piece {
        var piece: Piece = undefined;
        try fill(reader.from, std.mem.asBytes(&piece));
        var digest: Digest = undefined;
        try fill(reader.from, &digest);
        const block = std.mem.readInt(u64, &piece.block, .little);
        const blocks = std.mem.readInt(u32, &piece.count, .little);
        const has_bytes = std.mem.readInt(u32, &piece.has_bytes, .little);
        if (blocks > piece_blocks or has_bytes > 1) return error.DamagedFile;
        const bytes = reader.buffer[0 .. blocks * block_size];
        if (has_bytes == 1) try fill(reader.from, bytes);
        const hashed = if (has_bytes == 1) bytes else "";
        reader.before = piece.digest(&reader.before, hashed);
        if (!std.mem.eql(u8, &reader.before, &digest)) return error.DamagedFile;
        if (blocks == 0) {
            if (block != reader.done or has_bytes == 1) return error.DamagedFile;
            return null;
        }
        const count = reader.block_count;
        if (block < reader.at or block >= count or blocks > count - block)
            return error.DamagedFile;
        if (has_bytes == 0) @memset(bytes, 0);
        reader.done += blocks;
        reader.at = block + blocks;
        return .{ .block = block, .bytes = bytes };
    }
};

/// A layer that is made of whole blocks from elsewhere.
pub const NewLayer = struct {
    gpa: std.mem.Allocator,
    layer: WriteLayer,
    batch: *WriteLayer.Batch,
    nothing: u8 = 0,

    /// `dir` holds no layer. It must not move.
    pub fn create(
        made: *NewLayer,
        gpa: std.mem.Allocator,
        files: Files,
        dir: []const u8,
        head: layer_head.Head,
    ) ImportError!void {
        const batch = try gpa.create(WriteLayer.Batch);
        errdefer gpa.destroy(batch);
        made.* = .{ .gpa = gpa, .batch = batch, .layer = undefined };
        made.layer = try .create(gpa, files, dir, head, .{
            .context = &made.nothing,
            .vtable = &.{ .read = readNothing },
            .size = head.binding.disk_size,
        });
        // The device's limit counts once it writes.
        made.layer.head.limit_bytes = std.math.maxInt(u64);
    }

    /// Zeros behind the end of the disk are left out.
    pub fn put(made: *NewLayer, piece: LayerSnapshot.Piece) ImportError!void {
        const offset = piece.block * block_size;
        const disk_size = made.layer.head.binding.disk_size;
        const bytes = piece.bytes[0..@intCast(@min(piece.bytes.len, disk_size - offset))];
        made.layer.write(bytes, offset) catch |err| {
            if (err != error.Busy) return err;
            try made.layer.flush(made.batch);
            try made.layer.write(bytes, offset);
        };
    }

    /// They take no space.
    pub fn putZeros(made: *NewLayer, block: u64, count: u64) ImportError!void {
        const offset = block * block_size;
        const size = @min(count * block_size, made.layer.head.binding.disk_size - offset);
        made.layer.discard(offset, size) catch |err| {
            if (err != error.Busy) return err;
            try made.layer.flush(made.batch);
            try made.layer.discard(offset, size);
        };
    }

    /// The layer is complete on the disk when this returns.
    pub fn finish(made: *NewLayer) ImportError!void {
        try made.layer.flush(made.batch);
        made.layer.settle(made.batch);
    }

    pub fn close(made: *NewLayer) void {
        made.layer.close(made.gpa);
        made.gpa.destroy(made.batch);
        made.* = undefined;
    }
};

/// Makes a layer of the rest of a file, in `dir`, which holds none. It is complete on the disk when
/// this returns.
pub fn importLayer(
    gpa: std.mem.Allocator,
    files: Files,
    dir: []const u8,
    from: *std.Io.Reader,
    found: *const FileHead,
    layer_id: base.Uuid,
    progress: Progress,
) ImportError!Contents {
    const disk_size = found.head.binding.disk_size;
    var pieces: PieceReader = try .init(gpa, from, found);
    defer pieces.deinit(gpa);
    var head = found.head;
    head.layer_id = layer_id;
    head.sequence = 0;
    var made: NewLayer = undefined;
    try made.create(gpa, files, dir, head);
    defer made.close();
    while (try pieces.next()) |piece| {
        try made.put(piece);
        if (!progress.call(progress.context, @min(pieces.at * block_size, disk_size), disk_size))
            return error.Canceled;
    }
    try made.finish();
    return .{ .head = head, .blocks = pieces.done };
}

fn fill(from: *std.Io.Reader, buffer: []u8) error{ DamagedFile, ReadFileFailed }!void {
    from.readSliceAll(buffer) catch |err| return switch (err) {
        error.EndOfStream => error.DamagedFile,
        error.ReadFailed => error.ReadFileFailed,
    };
}

/// Only whole blocks are written: what lies below is not needed.
fn readNothing(_: *anyopaque, _: []u8, _: u64) BlockSource.ReadError!void {
    return error.ReadFailed;
}

test {
    _ = @import("layer_file_test.zig");
}
