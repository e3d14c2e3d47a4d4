//! Reads an image in pieces and hashes their blocks on several threads, ahead of the consumer,
//! which takes the pieces in order. The ring bounds memory and the distance ahead.

const std = @import("std");
const block = @import("../block.zig");
const image_source = @import("image_source.zig");
const assert = std.debug.assert;

const ImageSource = image_source.ImageSource;

pub const piece_size = 1 << 20;
const piece_blocks = piece_size / block.block_size;
const ring_size = 8;
const threads_max = 4;
/// Unpacking zstd takes two buffers of 128 KiB.
const stack_size = 1 << 20;

/// `Short`: the source ended before its size.
pub const Problem = image_source.ReadError || error{Short};

pub const Piece = struct {
    /// Bytes from the start of the image; a multiple of the block size.
    offset: u64,
    /// Bytes of the image in this piece; zeros fill the last block.
    size: usize,
    bytes: *[piece_blocks]block.Block,
    hashes: [piece_blocks]block.Hash,
    zeros: std.bit_set.Static(piece_blocks),
    problem: ?Problem,
    failed_at: u64,
    is_ready: bool,

    pub fn blocks(piece: *const Piece) usize {
        return std.math.divCeil(usize, piece.size, block.block_size) catch unreachable;
    }
};

pub const ImagePieces = @This();

io: std.Io,
source: ImageSource,
/// Held while a thread takes the next offset, and while a stream is read.
order: std.Io.Mutex = .init,
mutex: std.Io.Mutex = .init,
has_room: std.Io.Condition = .init,
is_done: std.Io.Condition = .init,
ring: [ring_size]Piece = undefined,
memory: *[ring_size][piece_blocks]block.Block,
next_offset: u64,
/// Counts pieces that threads have claimed, and pieces that were given back.
begun: u64 = 0,
returned: u64 = 0,
/// No more pieces are claimed.
is_over: bool = false,
threads: [threads_max]std.Thread = undefined,
thread_count: usize = 0,

/// Starts the threads.
///
/// @param from first byte to read; a multiple of the block size, 0 for a stream
pub fn create(
    gpa: std.mem.Allocator,
    io: std.Io,
    source: ImageSource,
    from: u64,
) error{ OutOfMemory, NoThreads }!*ImagePieces {
    assert(from % block.block_size == 0);
    const pieces = try gpa.create(ImagePieces);
    errdefer gpa.destroy(pieces);
    const memory = try gpa.create([ring_size][piece_blocks]block.Block);
    errdefer gpa.destroy(memory);
    pieces.* = .{ .io = io, .source = source, .memory = memory, .next_offset = from };
    for (&pieces.ring, memory) |*piece, *bytes| {
        piece.bytes = bytes;
        piece.is_ready = false;
    }
    errdefer pieces.stop();
    const wanted = @min(threads_max, std.Thread.getCpuCount() catch 1);
    while (pieces.thread_count < wanted) : (pieces.thread_count += 1) {
        pieces.threads[pieces.thread_count] = std.Thread.spawn(
            .{ .stack_size = stack_size },
            work,
            .{pieces},
        ) catch
            return error.NoThreads;
    }
    return pieces;
}

pub fn destroy(pieces: *ImagePieces, gpa: std.mem.Allocator) void {
    pieces.stop();
    gpa.destroy(pieces.memory);
    gpa.destroy(pieces);
}

fn stop(pieces: *ImagePieces) void {
    pieces.mutex.lockUncancelable(pieces.io);
    pieces.is_over = true;
    pieces.has_room.broadcast(pieces.io);
    pieces.mutex.unlock(pieces.io);
    for (pieces.threads[0..pieces.thread_count]) |thread| thread.join();
    pieces.thread_count = 0;
}

/// Returns the next piece in order, or null at the end of the image. Give it back before the
/// next call. Zeros may lie between pieces.
pub fn take(pieces: *ImagePieces) ?*Piece {
    pieces.mutex.lockUncancelable(pieces.io);
    defer pieces.mutex.unlock(pieces.io);
    const piece = &pieces.ring[@intCast(pieces.returned % ring_size)];
    while (!(pieces.begun > pieces.returned and piece.is_ready)) {
        if (pieces.is_over and pieces.begun == pieces.returned) return null;
        pieces.is_done.waitUncancelable(pieces.io, &pieces.mutex);
    }
    return piece;
}

pub fn giveBack(pieces: *ImagePieces, piece: *Piece) void {
    pieces.mutex.lockUncancelable(pieces.io);
    defer pieces.mutex.unlock(pieces.io);
    assert(piece == &pieces.ring[@intCast(pieces.returned % ring_size)]);
    piece.is_ready = false;
    // A read after this stops a safe build: the next thread that claims the piece sets both.
    piece.offset = undefined;
    piece.size = undefined;
    pieces.returned += 1;
    pieces.has_room.signal(pieces.io);
}

fn work(pieces: *ImagePieces) void {
    while (pieces.beginPiece()) |piece| {
        if (pieces.source.is_positional) pieces.fill(piece);
        if (piece.problem == null) hash(piece);
        pieces.mutex.lockUncancelable(pieces.io);
        piece.is_ready = true;
        if (piece.problem != null) pieces.is_over = true;
        pieces.is_done.signal(pieces.io);
        pieces.mutex.unlock(pieces.io);
    }
}

/// Returns null when nothing is left to read.
fn beginPiece(pieces: *ImagePieces) ?*Piece {
    pieces.order.lockUncancelable(pieces.io);
    defer pieces.order.unlock(pieces.io);
    const offset = pieces.offsetOfNext() orelse {
        pieces.finish();
        return null;
    };
    const piece = pieces.claim() orelse return null;
    piece.offset = offset;
    piece.problem = null;
    const left = if (pieces.source.size) |size| size - offset else piece_size;
    const data_end = pieces.source.dataEnd(offset) orelse offset + piece_size;
    piece.size = @intCast(@min(left, piece_size, data_end - offset));
    pieces.next_offset = offset + piece.size;
    if (!pieces.source.is_positional) {
        pieces.fill(piece);
        const is_last = pieces.source.size == null and piece.size < piece_size;
        if (piece.problem != null or is_last) pieces.finish();
    }
    return piece;
}

fn offsetOfNext(pieces: *ImagePieces) ?u64 {
    const size = pieces.source.size orelse return pieces.next_offset;
    if (pieces.next_offset >= size) return null;
    const found = pieces.source.nextData(pieces.next_offset) orelse return null;
    if (found >= size) return null;
    return @max(pieces.next_offset, found - found % block.block_size);
}

/// Waits for a free piece of the ring; returns null when the consumer has stopped.
fn claim(pieces: *ImagePieces) ?*Piece {
    pieces.mutex.lockUncancelable(pieces.io);
    defer pieces.mutex.unlock(pieces.io);
    while (!pieces.is_over and pieces.begun - pieces.returned >= ring_size)
        pieces.has_room.waitUncancelable(pieces.io, &pieces.mutex);
    if (pieces.is_over) return null;
    pieces.begun += 1;
    return &pieces.ring[@intCast((pieces.begun - 1) % ring_size)];
}

fn finish(pieces: *ImagePieces) void {
    pieces.mutex.lockUncancelable(pieces.io);
    defer pieces.mutex.unlock(pieces.io);
    pieces.is_over = true;
    pieces.is_done.signal(pieces.io);
}

fn fill(pieces: *ImagePieces, piece: *Piece) void {
    const bytes = std.mem.sliceAsBytes(piece.bytes);
    const wanted = piece.size;
    piece.size = pieces.source.read(bytes[0..wanted], piece.offset, &piece.failed_at) catch |err| {
        piece.problem = err;
        return;
    };
    if (pieces.source.size != null and piece.size < wanted) {
        piece.failed_at = piece.offset + piece.size;
        piece.problem = error.Short;
        return;
    }
    const padded = std.mem.alignForward(usize, piece.size, block.block_size);
    @memset(bytes[piece.size..padded], 0);
}

fn hash(piece: *Piece) void {
    piece.zeros = .empty;
    const count = piece.blocks();
    var begin: usize = 0;
    for (piece.bytes[0..count], 0..) |*bytes, index| if (block.isZeros(bytes)) {
        piece.zeros.set(index);
        hashRun(piece, begin, index);
        begin = index + 1;
    };
    hashRun(piece, begin, count);
}

fn hashRun(piece: *Piece, begin: usize, end: usize) void {
    block.hashAll(std.mem.sliceAsBytes(piece.bytes[begin..end]), piece.hashes[begin..end]);
}

const testing = std.testing;
const linux = std.os.linux;

test "pieces of a file arrive in order with their hashes, and holes are skipped" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const io = testing.io;
    const file = try tmp.dir.createFile(io, "image", .{ .read = true });
    const size = 40 * piece_size + 512;
    try file.setLength(io, size);
    const one: block.Block = @splat(1);
    try file.writePositionalAll(io, &one, 3 * piece_size + block.block_size);
    try file.writePositionalAll(io, one[0..512], size - 512);
    const is_canceled: std.atomic.Value(bool) = .init(false);
    var on: image_source.FdSource = try .fromFd(file.handle, &is_canceled);
    defer on.close();
    const pieces: *ImagePieces = try .create(testing.allocator, io, on.source(), 0);
    defer pieces.destroy(testing.allocator);
    var end: u64 = 0;
    var found: usize = 0;
    while (pieces.take()) |piece| {
        defer pieces.giveBack(piece);
        try testing.expectEqual(null, piece.problem);
        try testing.expect(piece.offset >= end);
        end = piece.offset + piece.size;
        for (0..piece.blocks()) |index| {
            if (piece.zeros.isSet(index)) continue;
            found += 1;
            try testing.expectEqual(block.hashOf(&piece.bytes[index]), piece.hashes[index]);
        }
    }
    try testing.expectEqual(size, end);
    try testing.expectEqual(2, found);
}

test "a stream is cut into full pieces up to its end" {
    var fds: [2]i32 = undefined;
    try testing.expectEqual(.SUCCESS, linux.errno(linux.pipe2(&fds, .{ .CLOEXEC = true })));
    const is_canceled: std.atomic.Value(bool) = .init(false);
    var on: image_source.FdSource = try .fromFd(fds[0], &is_canceled);
    defer on.close();
    const writer = try std.Thread.spawn(.{}, writeStream, .{fds[1]});
    defer writer.join();
    const pieces: *ImagePieces = try .create(testing.allocator, testing.io, on.source(), 0);
    defer pieces.destroy(testing.allocator);
    var at: u64 = 0;
    while (pieces.take()) |piece| {
        defer pieces.giveBack(piece);
        try testing.expectEqual(null, piece.problem);
        try testing.expectEqual(at, piece.offset);
        at += piece.size;
    }
    try testing.expectEqual(12 * piece_size + 1000, at);
}

fn writeStream(fd: i32) void {
    const bytes: [1000]u8 = @splat(7);
    var left: usize = 12 * piece_size + 1000;
    while (left > 0) left -= linux.write(fd, &bytes, @min(left, bytes.len));
    _ = linux.close(fd);
}

const Seen = struct { end: u64, problem: ?Problem = null, failed_at: u64 = 0 };

/// An image in memory with runs of zeros, some of which are holes.
const TestImage = struct {
    bytes: []const u8,
    size: ?u64,
    is_positional: bool = true,
    /// Reads fail from this byte on.
    fails_at: u64 = std.math.maxInt(u64),

    fn source(image: *TestImage) ImageSource {
        return .{
            .context = image,
            .vtable = &.{ .read = read, .nextData = nextData, .now = now },
            .size = image.size,
            .is_positional = image.is_positional,
        };
    }

    fn read(
        context: *anyopaque,
        buffer: []u8,
        offset: u64,
        failed_at: *u64,
    ) image_source.ReadError!usize {
        const image: *const TestImage = @ptrCast(@alignCast(context));
        const rest = image.bytes[@min(image.bytes.len, @as(usize, @intCast(offset)))..];
        const count = @min(rest.len, buffer.len);
        if (offset + count > image.fails_at) {
            failed_at.* = image.fails_at;
            return error.ReadFailed;
        }
        @memcpy(buffer[0..count], rest[0..count]);
        return count;
    }

    fn nextData(context: *anyopaque, offset: u64) ?u64 {
        const image: *const TestImage = @ptrCast(@alignCast(context));
        // An image that has become shorter.
        if (offset >= image.bytes.len) return offset;
        for (image.bytes[@intCast(offset)..], offset..) |byte, at| if (byte != 0) return at;
        return null;
    }

    fn now(_: *anyopaque) ?ImageSource.Now {
        return null;
    }

    /// Checks all pieces; returns where they end, and the problem of the last one.
    fn expectPieces(image: *TestImage, from: u64) !Seen {
        const pieces: *ImagePieces =
            try .create(testing.allocator, testing.io, image.source(), from);
        defer pieces.destroy(testing.allocator);
        var end = from;
        while (pieces.take()) |piece| {
            defer pieces.giveBack(piece);
            if (piece.problem) |problem| return .{
                .end = end,
                .problem = problem,
                .failed_at = piece.failed_at,
            };
            try testing.expectEqual(0, piece.offset % block.block_size);
            try testing.expect(piece.offset >= end);
            try testing.expect(block.isZeros(image.bytes[@intCast(end)..@intCast(piece.offset)]));
            end = piece.offset + piece.size;
            for (0..piece.blocks()) |index| {
                var expected: block.Block = @splat(0);
                const first: usize = @intCast(piece.offset + index * block.block_size);
                const part = image.bytes[first..@min(image.bytes.len, first + block.block_size)];
                @memcpy(expected[0..part.len], part);
                try testing.expectEqualSlices(u8, &expected, &piece.bytes[index]);
                try testing.expectEqual(block.isZeros(&expected), piece.zeros.isSet(index));
                if (block.isZeros(&expected)) continue;
                try testing.expectEqual(block.hashOf(&expected), piece.hashes[index]);
            }
        }
        return .{ .end = end };
    }
};

test "every piece has the bytes, hashes and zeros of its place, from any block on" {
    const size = 10 * piece_size + 5 * block.block_size + 512;
    const bytes = try testing.allocator.alloc(u8, size);
    defer testing.allocator.free(bytes);
    for (bytes, 0..) |*byte, at| {
        const index = at / block.block_size;
        const is_zero = index % 5 == 1 or index % 1024 > 700;
        byte.* = if (is_zero) 0 else @truncate(index * 31 + at / 512 + 1);
    }
    bytes[bytes.len - 1] = 1;
    for ([_]bool{ true, false }) |is_positional| for ([_]?u64{ size, null }) |known| {
        if (known == null and is_positional) continue;
        var image: TestImage = .{ .bytes = bytes, .size = known, .is_positional = is_positional };
        try testing.expectEqual(Seen{ .end = size }, try image.expectPieces(0));
        if (!is_positional) continue;
        const from = 3 * piece_size + 7 * block.block_size;
        try testing.expectEqual(Seen{ .end = size }, try image.expectPieces(from));
        // Nothing is left.
        const end = std.mem.alignForward(u64, size, block.block_size);
        try testing.expectEqual(Seen{ .end = end }, try image.expectPieces(end));
    };
}

test "an image that ends early or cannot be read is reported at its byte, behind all pieces before" {
    const bytes = try testing.allocator.alloc(u8, 3 * piece_size);
    defer testing.allocator.free(bytes);
    @memset(bytes, 'x');
    for ([_]bool{ true, false }) |is_positional| {
        var short: TestImage =
            .{ .bytes = bytes, .size = 3 * piece_size + 1000, .is_positional = is_positional };
        short.bytes = bytes[0 .. 2 * piece_size + 700];
        try testing.expectEqual(Seen{
            .end = 2 * piece_size,
            .problem = error.Short,
            .failed_at = 2 * piece_size + 700,
        }, try short.expectPieces(0));
        var bad: TestImage = .{
            .bytes = bytes,
            .size = 3 * piece_size,
            .is_positional = is_positional,
            .fails_at = piece_size + 5,
        };
        try testing.expectEqual(Seen{
            .end = piece_size,
            .problem = error.ReadFailed,
            .failed_at = piece_size + 5,
        }, try bad.expectPieces(0));
    }
}
