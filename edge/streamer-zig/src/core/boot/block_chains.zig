//! Lists of bytes in the blocks of one pool, so that many short ones or a few long ones fit. Pure:
//! the caller passes the memory.

const std = @import("std");
const assert = std.debug.assert;

pub const BlockChains = @This();

/// The pool's memory; the bytes of a chain run through its blocks in order.
blocks: []Block,
/// The next block of the same chain, or of the free list.
following: []u16,
first_free: u16,

pub const block_size = 4096;
pub const Block = [block_size]u8;
const no_block = std.math.maxInt(u16);

pub const Chain = struct {
    first: u16 = no_block,
    last: u16 = no_block,
    /// Bytes.
    size: u32 = 0,
};

/// `blocks` has at most 65534 entries and stays the caller's; it is not touched before it is used.
pub fn init(gpa: std.mem.Allocator, blocks: []Block) error{OutOfMemory}!BlockChains {
    assert(blocks.len > 0 and blocks.len < no_block);
    const following = try gpa.alloc(u16, blocks.len);
    for (following, 1..) |*next, index|
        next.* = if (index == blocks.len) no_block else @intCast(index);
    return .{ .blocks = blocks, .following = following, .first_free = 0 };
}

pub fn deinit(chains: *BlockChains, gpa: std.mem.Allocator) void {
    gpa.free(chains.following);
    chains.* = undefined;
}

/// Appends both, or returns false and changes nothing: not enough blocks are free.
pub fn append(chains: *BlockChains, chain: *Chain, head: []const u8, body: []const u8) bool {
    const size = head.len + body.len;
    var at = chains.first_free;
    for (0..blocksFor(chain.size + size) - blocksFor(chain.size)) |_| {
        if (at == no_block) return false;
        at = chains.following[at];
    }
    for ([_][]const u8{ head, body }) |part| {
        var left = part;
        while (left.len > 0) {
            const offset = chain.size % block_size;
            if (offset == 0) chains.grow(chain);
            const count = @min(left.len, block_size - offset);
            @memcpy(chains.blocks[chain.last][offset..][0..count], left[0..count]);
            left = left[count..];
            chain.size += @intCast(count);
        }
    }
    return true;
}

fn grow(chains: *BlockChains, chain: *Chain) void {
    const taken = chains.first_free;
    assert(taken != no_block);
    chains.first_free = chains.following[taken];
    chains.following[taken] = no_block;
    if (chain.first == no_block) chain.first = taken else chains.following[chain.last] = taken;
    chain.last = taken;
}

fn blocksFor(size: usize) usize {
    return std.math.divCeil(usize, size, block_size) catch unreachable;
}

/// Frees the blocks; the chain is empty afterwards.
pub fn release(chains: *BlockChains, chain: *Chain) void {
    if (chain.first != no_block) {
        chains.following[chain.last] = chains.first_free;
        chains.first_free = chain.first;
    }
    chain.* = .{};
}

/// Iterates over the bytes of a chain, a block at a time.
pub fn parts(chains: *const BlockChains, chain: *const Chain) Parts {
    return .{ .chains = chains, .block = chain.first, .left = chain.size };
}

pub const Parts = struct {
    chains: *const BlockChains,
    block: u16,
    left: u32,

    pub fn next(iterator: *Parts) ?[]const u8 {
        if (iterator.left == 0) return null;
        assert(iterator.block != no_block);
        const size = @min(iterator.left, block_size);
        const bytes = iterator.chains.blocks[iterator.block][0..size];
        iterator.left -= size;
        iterator.block = iterator.chains.following[iterator.block];
        return bytes;
    }
};

const testing = std.testing;

pub fn freeCount(chains: *const BlockChains) usize {
    return chains.lengthFrom(chains.first_free);
}

pub fn blockCount(chains: *const BlockChains, chain: *const Chain) usize {
    return chains.lengthFrom(chain.first);
}

fn lengthFrom(chains: *const BlockChains, first: u16) usize {
    var count: usize = 0;
    var at = first;
    while (at != no_block) : (at = chains.following[at]) count += 1;
    return count;
}

test "chains share the pool, and each gives its bytes in order" {
    var blocks: [6]Block = undefined;
    var chains: BlockChains = try .init(testing.allocator, &blocks);
    defer chains.deinit(testing.allocator);
    var lists: [2]Chain = @splat(.{});
    var expected: [2]std.ArrayList(u8) = @splat(.empty);
    defer for (&expected) |*list| list.deinit(testing.allocator);
    for (0..3) |_| {
        var bytes: [700]u8 = undefined;
        for (0..40) |number| {
            @memset(&bytes, @intCast(number));
            const index = number % 2;
            const head = bytes[0 .. number % 3];
            if (!chains.append(&lists[index], head, &bytes)) break;
            try expected[index].appendSlice(testing.allocator, head);
            try expected[index].appendSlice(testing.allocator, &bytes);
        }
        for (&lists, &expected) |*list, *wanted| {
            var got: std.ArrayList(u8) = .empty;
            defer got.deinit(testing.allocator);
            var iterator = chains.parts(list);
            while (iterator.next()) |part| try got.appendSlice(testing.allocator, part);
            try testing.expectEqualSlices(u8, wanted.items, got.items);
            chains.release(list);
            wanted.clearRetainingCapacity();
        }
        try testing.expectEqual(6, chains.freeCount());
    }
}
