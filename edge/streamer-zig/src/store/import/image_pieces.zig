//! Reads an image in pieces, and hashes and packs their blocks on several threads, ahead of the
//! consumer, which takes the pieces in order. The ring bounds memory and the distance ahead.

const std = @import("std");
const block = @import("../block.zig");
const image_source = @import("image_source.zig");
const lz4 = @import("codec").lz4;
const unit = @import("../unit.zig");
const assert = std.debug.assert;

const ImageSource = image_source.ImageSource;

pub const piece_size = 1 << 20;
const piece_blocks = piece_size / block.block_size;
const piece_units = piece_blocks / unit.blocks_max;
const ring_size = 8;
const threads_max = 4;
/// Unpacking zstd takes two buffers of 128 KiB; packing units one of 32 KiB and a table.
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
    stored: *[piece_units]unit.Stored,
    /// Bytes of the units that the blocks with data make, in the order of the disk; 0: not worth
    /// it.
    unit_sizes: [piece_units]u16,
    problem: ?Problem,
    failed_at: u64,
    is_ready: bool,

    pub fn blocks(piece: *const Piece) usize {
        return std.math.divCeil(usize, piece.size, block.block_size) catch unreachable;
    }

    /// Returns the unit that all blocks with data around this one make, or null if it is not
    /// worth it. Of pieces that are packed.
    pub fn unitAt(piece: *const Piece, at: usize) ?[]const u8 {
        const first = piece.offset / unit.raw_size_max;
        const index: usize = @intCast(piece.indexOf(at) / unit.blocks_max - first);
        const size = piece.unit_sizes[index];
        return if (size > 0) piece.stored[index][0..size] else null;
    }

    /// Index on the disk of a block of the piece.
    pub fn indexOf(piece: *const Piece, at: usize) u64 {
        return piece.offset / block.block_size + at;
    }

    /// Returns blocks of the piece one behind the other, up to eight. `room` may be used.
    pub fn gather(
        piece: *const Piece,
        from: usize,
        wanted: Blocks,
        room: *[unit.raw_size_max]u8,
    ) []const u8 {
        const first = wanted.findFirstSet().?;
        const count = wanted.count();
        const all = std.mem.sliceAsBytes(piece.bytes);
        // Mostly there are no gaps.
        if (wanted.findLastSet().? - first + 1 == count)
            return all[(from + first) * block.block_size ..][0 .. count * block.block_size];
        var size: usize = 0;
        var each = wanted.iterator(.{});
        while (each.next()) |index| : (size += block.block_size)
            @memcpy(room[size..][0..block.block_size], &piece.bytes[from + index]);
        return room[0..size];
    }
};

/// Some of the blocks of a unit.
pub const Blocks = std.bit_set.Static(unit.blocks_max);

pub const ImagePieces = @This();

io: std.Io,
source: ImageSource,
/// Held while a thread takes the next offset, and while a stream is read.
order: std.Io.Mutex = .init,
mutex: std.Io.Mutex = .init,
has_room: std.Io.Condition = .init,
is_done: std.Io.Condition = .init,
ring: [ring_size]Piece = undefined,
memory: *[ring_size]Memory,
/// Whether pieces are packed.
packs: bool,
next_offset: u64,
/// Counts pieces that threads have claimed, and pieces that were given back.
begun: u64 = 0,
returned: u64 = 0,
/// No more pieces are claimed.
is_over: bool = false,
threads: [threads_max]std.Thread = undefined,
thread_count: usize = 0,

const Memory = struct { bytes: [piece_blocks]block.Block, stored: [piece_units]unit.Stored };

/// Starts the threads.
///
/// @param from first byte to read; a multiple of the block size, 0 for a stream
/// @param packs whether the blocks with data are also packed
pub fn create(
    gpa: std.mem.Allocator,
    io: std.Io,
    source: ImageSource,
    from: u64,
    packs: bool,
) error{ OutOfMemory, NoThreads }!*ImagePieces {
    assert(from % block.block_size == 0);
    const pieces = try gpa.create(ImagePieces);
    errdefer gpa.destroy(pieces);
    const memory = try gpa.create([ring_size]Memory);
    errdefer gpa.destroy(memory);
    pieces.* = .{
        .io = io,
        .source = source,
        .memory = memory,
        .packs = packs,
        .next_offset = from,
    };
    for (&pieces.ring, memory) |*piece, *own| {
        piece.bytes = &own.bytes;
        piece.stored = &own.stored;
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
    var table: lz4.Table = undefined;
    while (pieces.beginPiece()) |piece| {
        if (pieces.source.is_positional) pieces.fill(piece);
        if (piece.problem == null) {
            hash(piece);
            if (pieces.packs) pack(piece, &table);
        }
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
    // It ends with a unit.
    const most = piece_size - offset % unit.raw_size_max;
    piece.size = @intCast(@min(left, most, data_end - offset));
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

fn pack(piece: *Piece, table: *lz4.Table) void {
    var room: [unit.raw_size_max]u8 = undefined;
    const count = piece.blocks();
    var begin: usize = 0;
    for (&piece.unit_sizes, piece.stored) |*size, *stored| {
        if (begin >= count) break;
        const index_in_unit: usize = @intCast(piece.indexOf(begin) % unit.blocks_max);
        const end = @min(count, begin + unit.blocks_max - index_in_unit);
        var wanted: Blocks = .empty;
        for (begin..end) |at| if (!piece.zeros.isSet(at)) wanted.set(at - begin);
        size.* = 0;
        if (wanted.findFirstSet() != null) {
            const raw = piece.gather(begin, wanted, &room);
            if (unit.pack(.{ .quick = table }, stored, raw)) |bytes| size.* = @intCast(bytes.len);
        }
        begin = end;
    }
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
    const pieces: *ImagePieces = try .create(testing.allocator, io, on.source(), 0, false);
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
    const pieces: *ImagePieces = try .create(testing.allocator, testing.io, on.source(), 0, false);
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
            try .create(testing.allocator, testing.io, image.source(), from, true);
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
                if (piece.unitAt(index)) |stored| try expectUnit(piece, index, stored);
            }
        }
        return .{ .end = end };
    }
};

/// The unit has all blocks with data of its place.
fn expectUnit(piece: *const Piece, at: usize, stored: []const u8) !void {
    var raw: [unit.raw_size_max]u8 = undefined;
    var count: usize = 0;
    for (0..piece.blocks()) |other| {
        const is_in_it =
            piece.indexOf(other) / unit.blocks_max == piece.indexOf(at) / unit.blocks_max;
        if (!is_in_it or piece.zeros.isSet(other)) continue;
        raw[count * block.block_size ..][0..block.block_size].* = piece.bytes[other];
        count += 1;
    }
    var back: [unit.raw_size_max]u8 = undefined;
    const size = count * block.block_size;
    try testing.expectEqual(0, try unit.unpack(back[0..size], stored));
    try testing.expectEqualSlices(u8, raw[0..size], back[0..size]);
}

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
        // Its first unit has one block.
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
