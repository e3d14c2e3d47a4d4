//! Answer pieces: what READs have of each unit of a disk, packed for the wire, in memory. They are
//! found by the hashes of their blocks: all versions of an edge, and all of their devices, share
//! them, and nothing here can be outdated. What the store keeps packed on disk are its units.
//!
//! Threads that answer READs (the packet loop, shards) only find pieces, and never wait: a piece
//! that is being replaced is not there. Threads in the background add them. The memory is of fixed
//! size; what was not used for the longest time makes room.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const core = @import("core");
const assert = std.debug.assert;

const Hash = store.block.Hash;
const unit_size = core.stream.packed_answers.unit_size;
const blocks_max = unit_size / store.block.block_size;

pub const AnswerPieces = @This();

/// What a piece of a disk contains.
pub const Key = struct {
    /// Of its blocks; zeros behind them.
    hashes: [blocks_max]Hash,
    /// Bytes of the piece: the last block of a disk may be shorter.
    size: u32,

    /// Reads the key of a piece of whole blocks.
    pub fn ofPiece(
        reader: *store.VersionReader,
        size: usize,
        offset: u64,
    ) store.VersionReader.Error!Key {
        var key: Key = .{ .hashes = @splat(@splat(0)), .size = @intCast(size) };
        const count = std.math.divCeil(usize, size, store.block.block_size) catch unreachable;
        try reader.readHashes(offset / store.block.block_size, key.hashes[0..count]);
        return key;
    }

    /// Returns whether all of the piece is zeros.
    pub fn isZeros(key: *const Key) bool {
        return std.mem.allEqual(u8, std.mem.asBytes(&key.hashes), 0);
    }

    /// Two pieces of equal tags may differ. Never 0, and the lowest bit is free.
    pub fn tag(key: *const Key) u64 {
        var mixed: u64 = key.size;
        for (&key.hashes) |*hash|
            mixed = std.math.rotl(u64, mixed, 11) ^ std.mem.readInt(u64, hash[0..8], .little);
        return @max(2, mixed & ~is_stored);
    }

    fn eql(key: *const Key, other: *const Key) bool {
        return key.size == other.size and
            std.mem.eql(u8, std.mem.asBytes(&key.hashes), std.mem.asBytes(&other.hashes));
    }
};

const Tag = std.atomic.Value(u64);
/// Of a tag: packing makes the piece no smaller.
const is_stored: u64 = 1;
const chunk_size = 2 << 10;
const chunks_each_max = unit_size / chunk_size;
/// Entries that a tag may be in.
const ways = 8;
/// Memory per entry: less than most packed pieces take, so that chunks run out first.
const bytes_per_entry = 8 << 10;

pub const Entry = struct {
    /// Readers that hold it, and `is_changing`.
    holders: std.atomic.Value(u32),
    /// Rounds of the search for room that it survives: 2 after it was used, 1 if it is new.
    worth: std.atomic.Value(u8),
    chunk_count: u8,
    /// Bytes; 0: it does not shrink.
    packed_size: u16,
    /// It gets no smaller.
    is_smallest: bool,
    key: Key,
    chunks: [chunks_each_max]u32,

    /// A thread in the background has the entry for itself.
    const is_changing = 1 << 31;

    /// One round of the search for room; returns whether it can go.
    fn isWorthless(entry: *Entry) bool {
        const worth = entry.worth.load(.monotonic);
        if (worth > 0) entry.worth.store(worth - 1, .monotonic);
        return worth == 0;
    }
};

const worth_used = 2;
const worth_new = 1;

/// Memory of pieces, in chunks.
memory: []u8,
/// Of the entries, by their index, with `is_stored`; 0: free. Those of a set fit into one line of
/// the processor's cache.
tags: []Tag,
entries: []Entry,
/// Chunks that were given back, and the first that was never used.
free_chunks: []u32,
free_count: u32 = 0,
fresh: u32 = 0,
/// Where the search for what was not used goes on.
hand: usize = 0,
/// Held by a thread that adds a piece, for some microseconds.
adding: std.atomic.Value(bool) = .init(false),
/// Counts of now, for the metrics.
piece_count: std.atomic.Value(u64) = .init(0),
used_bytes: std.atomic.Value(u64) = .init(0),
/// Since the start.
added_count: std.atomic.Value(u64) = .init(0),
evicted_count: std.atomic.Value(u64) = .init(0),

pub const size_min = 1 << 20;

/// `size` is in bytes; memory is taken as it is used.
pub fn init(gpa: std.mem.Allocator, size: u64) error{OutOfMemory}!AnswerPieces {
    assert(size >= size_min);
    const chunk_count: u32 = @intCast(size / chunk_size);
    const memory = try base.allocUntouched(gpa, u8, @as(usize, chunk_count) * chunk_size);
    errdefer base.freeUntouched(gpa, u8, memory);
    // Reads jump all over it.
    base.preferLargePages(memory);
    const free_chunks = try base.allocUntouched(gpa, u32, chunk_count);
    errdefer base.freeUntouched(gpa, u32, free_chunks);
    const entry_count: usize = @intCast(size / bytes_per_entry / ways * ways);
    const tags = try base.allocZeroed(gpa, Tag, .{ .raw = 0 }, entry_count);
    errdefer base.freeZeroed(gpa, Tag, tags);
    const entries = try base.allocZeroed(gpa, Entry, .{ .chunk_count = 0 }, entry_count);
    base.preferLargePages(std.mem.sliceAsBytes(entries));
    return .{ .memory = memory, .tags = tags, .entries = entries, .free_chunks = free_chunks };
}

pub fn deinit(pieces: *AnswerPieces, gpa: std.mem.Allocator) void {
    base.freeUntouched(gpa, u8, pieces.memory);
    base.freeUntouched(gpa, u32, pieces.free_chunks);
    base.freeZeroed(gpa, Entry, pieces.entries);
    base.freeZeroed(gpa, Tag, pieces.tags);
    pieces.* = undefined;
}

/// A piece that stays as it is until it is released.
pub const Held = struct {
    pieces: *const AnswerPieces,
    entry: *Entry,

    pub fn size(held: Held) u16 {
        return held.entry.packed_size;
    }

    pub fn writeTo(held: Held, writer: *core.stream.packed_answers.AnswerWriter) void {
        var left: usize = held.entry.packed_size;
        for (held.entry.chunks[0..held.entry.chunk_count]) |chunk| {
            const bytes = @min(left, chunk_size);
            writer.write(held.pieces.memory[@as(usize, chunk) * chunk_size ..][0..bytes]);
            left -= bytes;
        }
        assert(left == 0);
    }

    pub fn release(held: Held) void {
        const before = held.entry.holders.fetchSub(1, .release);
        assert(before & ~@as(u32, Entry.is_changing) > 0);
    }
};

/// Returns whether the piece is here, and packing it again would make it smaller.
pub fn canShrink(pieces: *AnswerPieces, key: *const Key) bool {
    while (pieces.adding.swap(true, .acquire)) std.Thread.yield() catch {};
    defer pieces.adding.store(false, .release);
    const tag = key.tag();
    const first = pieces.setOf(tag);
    for (first..first + ways) |index|
        if (pieces.isOf(index, tag, key)) return !pieces.entries[index].is_smallest;
    return false;
}

pub const Found = union(enum) {
    /// Packing makes it no smaller.
    stored,
    held: Held,

    pub fn release(found: Found) void {
        switch (found) {
            .stored => {},
            .held => |held| held.release(),
        }
    }
};

/// Never waits; null: it is not here now.
pub fn find(pieces: *AnswerPieces, key: *const Key) ?Found {
    const tag = key.tag();
    const first = pieces.setOf(tag);
    for (pieces.tags[first..][0..ways], first..) |*tag_here, index| {
        const now = tag_here.load(.acquire);
        // Another piece with this tag would be sent as it is: no byte is wrong.
        if (now == tag | is_stored) return .stored;
        if (now != tag) continue;
        const entry = &pieces.entries[index];
        const before = entry.holders.fetchAdd(1, .acquire);
        const held: Held = .{ .pieces = pieces, .entry = entry };
        // It may have changed since.
        if (before & Entry.is_changing == 0 and
            tag_here.load(.monotonic) == tag and entry.key.eql(key))
        {
            if (entry.worth.load(.monotonic) != worth_used)
                entry.worth.store(worth_used, .monotonic);
            return .{ .held = held };
        }
        held.release();
    }
    return null;
}

/// The first of the entries in which a piece with this tag may be.
fn setOf(pieces: *const AnswerPieces, tag: u64) usize {
    const sets = pieces.entries.len / ways;
    return @intCast(tag / 2 % sets * ways);
}

/// Adds a piece, or puts a smaller form of it in its place; `bytes` is null if it does not shrink.
/// Not for threads that must not wait.
pub fn add(
    pieces: *AnswerPieces,
    key: *const Key,
    bytes: ?[]const u8,
    how: enum { quickly, small },
) void {
    const size: u16 = if (bytes) |some| @intCast(some.len) else 0;
    assert(size < key.size and (bytes == null or size > 0));
    while (pieces.adding.swap(true, .acquire)) std.Thread.yield() catch {};
    defer pieces.adding.store(false, .release);
    const tag = key.tag();
    const index = pieces.indexFor(tag, key) orelse return;
    const entry = &pieces.entries[index];
    if (pieces.isOf(index, tag, key) and (entry.packed_size <= size or size == 0)) {
        // Nobody but the one who adds reads it.
        if (how == .small) entry.is_smallest = true;
        return;
    }
    const count = std.math.divCeil(u32, size, chunk_size) catch unreachable;
    if (!take(entry)) return;
    defer letGo(entry);
    pieces.empty(index);
    while (pieces.memory.len / chunk_size - pieces.fresh + pieces.free_count < count)
        if (!pieces.evictOne()) return;
    for (0..count) |part_index| {
        const chunk = pieces.takeChunk();
        entry.chunks[part_index] = chunk;
        const begin = part_index * chunk_size;
        const part = bytes.?[begin..@min(begin + chunk_size, size)];
        @memcpy(pieces.memory[@as(usize, chunk) * chunk_size ..][0..part.len], part);
    }
    entry.chunk_count = @intCast(count);
    entry.packed_size = size;
    entry.is_smallest = how == .small or size == 0;
    entry.key = key.*;
    entry.worth.store(worth_new, .monotonic);
    pieces.tags[index].store(if (size == 0) tag | is_stored else tag, .release);
    add1(&pieces.piece_count);
    add1(&pieces.added_count);
    _ = pieces.used_bytes.fetchAdd(count * chunk_size, .monotonic);
}

fn add1(counter: *std.atomic.Value(u64)) void {
    _ = counter.fetchAdd(1, .monotonic);
}

fn isOf(pieces: *const AnswerPieces, index: usize, tag: u64, key: *const Key) bool {
    const now = pieces.tags[index].load(.monotonic);
    return now & ~is_stored == tag and pieces.entries[index].key.eql(key);
}

/// Returns the entry of this piece, else a free one, else one that was not used for some rounds.
fn indexFor(pieces: *AnswerPieces, tag: u64, key: *const Key) ?usize {
    const first = pieces.setOf(tag);
    const end = first + ways;
    for (first..end) |index| if (pieces.isOf(index, tag, key)) return index;
    for (first..end) |index| if (pieces.tags[index].load(.monotonic) == 0) return index;
    for (0..worth_used + 1) |_| for (first..end) |index|
        if (pieces.entries[index].isWorthless()) return index;
    return null;
}

/// Gives a piece up that was not used for some rounds. Returns false if none can be.
fn evictOne(pieces: *AnswerPieces) bool {
    for (0..(worth_used + 1) * pieces.entries.len) |_| {
        const index = pieces.hand;
        const entry = &pieces.entries[index];
        pieces.hand = (index + 1) % pieces.entries.len;
        if (entry.chunk_count == 0 or !entry.isWorthless()) continue;
        if (!take(entry)) continue;
        pieces.empty(index);
        letGo(entry);
        return true;
    }
    return false;
}

/// Tries of a thread in the background to get an entry that is held for as long as it takes to copy
/// it.
const take_tries_max = 100;

fn take(entry: *Entry) bool {
    for (0..take_tries_max) |_| {
        if (entry.holders.cmpxchgStrong(0, Entry.is_changing, .acquire, .monotonic) == null)
            return true;
        std.Thread.yield() catch {};
    }
    return false;
}

fn letGo(entry: *Entry) void {
    _ = entry.holders.fetchSub(Entry.is_changing, .release);
}

fn empty(pieces: *AnswerPieces, index: usize) void {
    if (pieces.tags[index].swap(0, .monotonic) == 0) return;
    const entry = &pieces.entries[index];
    for (entry.chunks[0..entry.chunk_count]) |chunk| {
        pieces.free_chunks[pieces.free_count] = chunk;
        pieces.free_count += 1;
    }
    _ = pieces.used_bytes.fetchSub(@as(u64, entry.chunk_count) * chunk_size, .monotonic);
    _ = pieces.piece_count.fetchSub(1, .monotonic);
    add1(&pieces.evicted_count);
    entry.chunk_count = 0;
}

/// Gives all pieces up, except those that are being sent. Not for threads that must not wait.
pub fn forgetAll(pieces: *AnswerPieces) void {
    for (pieces.entries, 0..) |*entry, index| {
        if (pieces.tags[index].load(.monotonic) == 0) continue;
        while (pieces.adding.swap(true, .acquire)) std.Thread.yield() catch {};
        defer pieces.adding.store(false, .release);
        if (!take(entry)) continue;
        pieces.empty(index);
        letGo(entry);
    }
}

fn takeChunk(pieces: *AnswerPieces) u32 {
    if (pieces.free_count > 0) {
        pieces.free_count -= 1;
        return pieces.free_chunks[pieces.free_count];
    }
    defer pieces.fresh += 1;
    return pieces.fresh;
}

test {
    _ = @import("answer_pieces_test.zig");
}
