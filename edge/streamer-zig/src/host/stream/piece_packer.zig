//! Packs pieces of READs for answers, in the background: what the boots of a version read, by the
//! thread of boot profiles, and what devices request again and again, by a thread of its own. The
//! packet loop and the shards only look into `pieces`, and say what they did not find there.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const lz4 = @import("codec").lz4;
const store = @import("store");
const HeldDisk = @import("version_disk.zig").HeldDisk;
const VersionDisk = @import("version_disk.zig").VersionDisk;
const AnswerPieces = @import("answer_pieces.zig");
const PointerChannel = @import("pointer_channel.zig");
const Reader = @import("read_workers.zig").Reader;
const assert = std.debug.assert;
const linux = std.os.linux;

const Piece = core.stream.packed_answers.Piece;
const block_size = store.block.block_size;
const unit_size = core.stream.packed_answers.unit_size;

pub const PiecePacker = @This();

/// Orders that wait; what does not fit is requested again.
const orders_max = 64;
/// Pieces that were requested once, by their tags.
const asked_max = 1 << 15;
/// Nodes of versions' trees, of the thread: 256 KiB.
const cache_nodes = 64;
/// Unpacked units of the store in memory: 256 KiB.
const cache_units = 8;
/// Shorter pieces are packed for boots alone: a device that reads a few blocks here and there would
/// fill the memory with parts of units, and has little to gain.
const asked_size_min = unit_size / 2;
/// Earlier places that are compared for each byte of a piece that gets small: twice as many take
/// twice as long for half a per cent.
const search_depth = 16;
/// A piece is kept packed if that saves at least this part of it.
const saving_least = 16;

pieces: AnswerPieces,
orders: [orders_max]Order = @splat(.{}),
/// Where the search for a free order goes on.
hand: std.atomic.Value(u32) = .init(0),
channel: PointerChannel,
asked: []std.atomic.Value(u64),
reader: Reader,
/// Answers that were packed, and the bytes that they saved on the wire.
answers: Count = .{},
saved_bytes: Count = .{},
thread: ?std.Thread = null,

const Order = struct {
    state: std.atomic.Value(enum(u8) { free, taken }) = .init(.free),
    disk: HeldDisk = undefined,
    piece: Piece = undefined,
};

/// Of several threads.
const Count = struct {
    value: std.atomic.Value(u64) align(std.atomic.cache_line) = .init(0),

    pub fn add(count: *Count, more: u64) void {
        _ = count.value.fetchAdd(more, .monotonic);
    }

    pub fn get(count: *const Count) u64 {
        return count.value.load(.monotonic);
    }
};

pub const InitError = error{ OutOfMemory, SystemCallFailed };

/// `memory_size` is in bytes, at least `AnswerPieces.size_min`.
pub fn init(gpa: std.mem.Allocator, memory_size: u64) InitError!PiecePacker {
    var pieces: AnswerPieces = try .init(gpa, memory_size);
    errdefer pieces.deinit(gpa);
    const asked = try gpa.alloc(std.atomic.Value(u64), asked_max);
    errdefer gpa.free(asked);
    @memset(asked, .init(0));
    var reader: Reader = try .init(gpa, cache_nodes, cache_units);
    errdefer reader.deinit(gpa);
    return .{
        .pieces = pieces,
        .channel = try .init(.thread, orders_max),
        .asked = asked,
        .reader = reader,
    };
}

/// The thread runs until `deinit`, or until the process ends: the packer must not move.
pub fn start(packer: *PiecePacker) std.Thread.SpawnError!void {
    packer.thread = try std.Thread.spawn(.{ .stack_size = 512 << 10 }, run, .{packer});
}

pub fn deinit(packer: *PiecePacker, gpa: std.mem.Allocator) void {
    packer.channel.end();
    if (packer.thread) |thread| thread.join() else packer.runOrders();
    packer.channel.deinit();
    packer.reader.deinit(gpa);
    packer.pieces.deinit(gpa);
    gpa.free(packer.asked);
    packer.* = undefined;
}

/// A device has requested a piece that is not there; the second time it is packed. Never waits.
pub fn onMissing(
    packer: *PiecePacker,
    disk: *const VersionDisk,
    key: *const AnswerPieces.Key,
    piece: Piece,
) void {
    if (piece.size < asked_size_min) return;
    const tag = key.tag();
    const slot = &packer.asked[@intCast(tag % asked_max)];
    if (slot.load(.monotonic) != tag) return slot.store(tag, .monotonic);
    const order = packer.takeOrder() orelse return;
    order.piece = piece;
    order.disk = HeldDisk.init(disk) catch return order.state.store(.free, .release);
    slot.store(0, .monotonic);
    packer.channel.send(Order, order);
}

fn takeOrder(packer: *PiecePacker) ?*Order {
    const first = packer.hand.fetchAdd(1, .monotonic);
    // Mostly the first is free; a full table is not searched for long.
    for (0..4) |index| {
        const order = &packer.orders[(first +% @as(u32, @intCast(index))) % orders_max];
        if (order.state.cmpxchgStrong(.free, .taken, .acquire, .monotonic) == null) return order;
    }
    return null;
}

fn run(packer: *PiecePacker) void {
    // It gets a quarter of what a thread that serves devices gets: when both want the processor, a
    // piece that is packed soon saves them time.
    _ = linux.syscall3(.setpriority, 0, @as(usize, @intCast(linux.gettid())), 5);
    packer.runOrders();
}

fn runOrders(packer: *PiecePacker) void {
    while (packer.runOne()) {}
}

/// Carries out the next order, and waits for it. Returns false at the end.
pub fn runOne(packer: *PiecePacker) bool {
    const order = packer.channel.receive(Order) orelse return false;
    packer.pack(&order.disk, order.piece) catch {};
    order.disk.letGo();
    order.state.store(.free, .release);
    return true;
}

/// Damage is found again, and reported, by whoever reads it for a device.
fn pack(packer: *PiecePacker, disk: *HeldDisk, piece: Piece) !void {
    var bytes: [unit_size]u8 = undefined;
    const part = bytes[0..piece.size];
    const key = try packer.reader.readPiece(disk, part, piece.offset);
    var tree = packer.reader.treeOf(&disk.version);
    packer.add(&tree, &key, part, piece.offset);
}

/// Packs a piece that `tree` has just read, unless it is there. What the store keeps as one unit is
/// packed already, and small if it was packed again. For threads in the background.
pub fn add(
    packer: *PiecePacker,
    tree: *store.VersionReader,
    key: *const AnswerPieces.Key,
    bytes: []const u8,
    offset: u64,
) void {
    assert(bytes.len == key.size);
    if (key.isZeros() or packer.has(key)) return;
    const most = bytes.len - bytes.len / saving_least - 1;
    var stored: store.unit.Stored = undefined;
    if (unitOf(tree, bytes, offset, &stored)) |unit| if (unit.len <= most)
        return packer.pieces.add(key, unit, .quickly);
    var table: lz4.Table = undefined;
    var out: [unit_size]u8 = undefined;
    const size = lz4.pack(&table, out[0..most], bytes);
    packer.pieces.add(key, if (size) |some| out[0..some] else null, .quickly);
}

fn unitOf(
    tree: *store.VersionReader,
    bytes: []const u8,
    offset: u64,
    stored: *store.unit.Stored,
) ?[]const u8 {
    comptime assert(unit_size == store.unit.raw_size_max);
    if (bytes.len != unit_size or offset % unit_size != 0) return null;
    return tree.packedNow(offset / block_size, stored) catch null;
}

/// Returns whether the piece is there, packed quickly.
pub fn canShrink(packer: *PiecePacker, key: *const AnswerPieces.Key) bool {
    return packer.pieces.canShrink(key);
}

/// Packs a piece that is there into fewer bytes, which takes ten times as long as `add`.
pub fn shrink(
    packer: *PiecePacker,
    search: *lz4.Search,
    key: *const AnswerPieces.Key,
    bytes: []const u8,
) void {
    assert(bytes.len == key.size);
    var out: [unit_size]u8 = undefined;
    const size = lz4.packSmall(search, out[0 .. bytes.len - 1], bytes, search_depth);
    packer.pieces.add(key, if (size) |some| out[0..some] else null, .small);
}

/// Returns whether the piece is there.
pub fn has(packer: *PiecePacker, key: *const AnswerPieces.Key) bool {
    const found = packer.pieces.find(key) orelse return false;
    found.release();
    return true;
}

/// Returns the key of a piece; null if the piece does not consist of whole blocks of the disk, or
/// the hashes are not in memory.
pub fn keyNow(disk: *VersionDisk, piece: Piece) ?AnswerPieces.Key {
    const version = switch (disk.*) {
        .file => return null,
        .version => |*version| version,
    };
    if (!isWhole(piece, version.manifest.disk_size)) return null;
    var key: AnswerPieces.Key = .{ .hashes = @splat(@splat(0)), .size = piece.size };
    const count = std.math.divCeil(u32, piece.size, block_size) catch unreachable;
    const first = piece.offset / block_size;
    const is_known = version.reader.hashesNow(first, key.hashes[0..count]) catch return null;
    return if (is_known) key else null;
}

/// The last block of a disk may be shorter.
fn isWhole(piece: Piece, disk_size: u64) bool {
    if (piece.offset % block_size != 0) return false;
    return piece.size % block_size == 0 or piece.offset + piece.size == disk_size;
}
