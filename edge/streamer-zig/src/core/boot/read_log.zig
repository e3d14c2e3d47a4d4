//! The READs of boots in progress, each listed once. Bounded per boot and in total; what is beyond
//! is counted, and costs a boot nothing else. With them stay the parts of what a device says about
//! its boot. Pure: the caller passes memory and times.

const std = @import("std");
const base = @import("base");
const BlockChains = @import("block_chains.zig");
const read_list = @import("read_list.zig");
const wire = @import("wire").stream;
const assert = std.debug.assert;

pub const ReadLog = @This();

/// Null: no READs are listed.
chains: ?BlockChains,
slots: []Slot,
used_count: u16 = 0,
/// READs that were not listed, of all boots.
dropped: u64 = 0,

/// 64 MiB: four million READs.
pub const blocks_default = 16384;
pub const slots_default = 1024;

pub const Slot = struct {
    /// Zero: free.
    boot_id: base.Uuid = .zero,
    chain: BlockChains.Chain = .{},
    /// READs of this boot that were not listed.
    dropped: u32 = 0,
    accounts: [account_kinds]Account = @splat(.{}),
    /// For the caller: seconds since the boot was over, and what is known of it from then on, also
    /// when its device has begun another.
    over_s: u8 = 0,
    version_id: base.Uuid = .zero,
    started_unix_ms: u64 = 0,

    pub fn accountOf(slot: *Slot, kind: wire.AccountKind) *Account {
        return &slot.accounts[@backingInt(kind) - 1];
    }
};

const account_kinds = 2;

/// What a device says about its boot, in parts.
pub const Account = struct {
    chain: BlockChains.Chain = .{},
    part_next: u16 = 0,
    state: enum { none, partial, whole, broken } = .none,
};

pub const none: ReadLog = .{ .chains = null, .slots = &.{} };

/// `blocks` stays the caller's; it is not touched before it is used.
pub fn init(
    gpa: std.mem.Allocator,
    blocks: []BlockChains.Block,
    slots_max: u16,
) error{OutOfMemory}!ReadLog {
    assert(slots_max > 0);
    var chains: BlockChains = try .init(gpa, blocks);
    errdefer chains.deinit(gpa);
    const slots = try gpa.alloc(Slot, slots_max);
    @memset(slots, .{});
    return .{ .chains = chains, .slots = slots };
}

pub fn deinit(log: *ReadLog, gpa: std.mem.Allocator) void {
    if (log.chains) |*chains| chains.deinit(gpa);
    gpa.free(log.slots);
    log.* = undefined;
}

/// Lists a READ. `hint` is kept with the boot: the slot that it had last.
pub fn add(log: *ReadLog, boot_id: base.Uuid, hint: *u16, read: *const read_list.Read) void {
    assert(!boot_id.eql(.zero));
    const chains = if (log.chains) |*chains| chains else return;
    const slot = log.slotFor(boot_id, hint) orelse {
        log.dropped += 1;
        return;
    };
    const is_full = slot.chain.size == read_list.records_max * read_list.record_size;
    if (!is_full and chains.append(&slot.chain, &read.record().toBytes(), &.{})) return;
    slot.dropped +|= 1;
    log.dropped += 1;
}

/// Takes a part, once and in order; what is beyond the limits breaks the account. Does nothing for
/// a boot without a list if `is_over`: its list was taken.
pub fn addAccount(
    log: *ReadLog,
    boot_id: base.Uuid,
    hint: *u16,
    is_over: bool,
    part: *const wire.Account,
) void {
    if (log.chains == null) return;
    const has_slot = hint.* < log.slots.len and log.slots[hint.*].boot_id.eql(boot_id);
    if (is_over and !has_slot) return;
    const slot = log.slotFor(boot_id, hint) orelse return;
    const account = slot.accountOf(part.kind);
    assert(part.bytes.len > 0);
    assert(account.chain.size <= read_list.accountSizeMax(part.kind));
    switch (account.state) {
        .whole, .broken => return,
        .none, .partial => {},
    }
    if (part.part < account.part_next) return;
    const is_next = part.part == account.part_next;
    const size_max = read_list.accountSizeMax(part.kind);
    const fits = account.chain.size + part.bytes.len <= size_max;
    if (is_next and fits and log.chains.?.append(&account.chain, part.bytes, &.{})) {
        account.part_next += 1;
        account.state = if (part.is_last) .whole else .partial;
        return;
    }
    log.chains.?.release(&account.chain);
    account.state = .broken;
}

fn slotFor(log: *ReadLog, boot_id: base.Uuid, hint: *u16) ?*Slot {
    assert(log.used_count <= log.slots.len);
    if (hint.* < log.slots.len and log.slots[hint.*].boot_id.eql(boot_id))
        return &log.slots[hint.*];
    if (log.used_count == log.slots.len) return null;
    for (log.slots, 0..) |*slot, index| {
        if (!slot.boot_id.eql(.zero)) continue;
        slot.* = .{ .boot_id = boot_id };
        log.used_count += 1;
        hint.* = @intCast(index);
        return slot;
    }
    unreachable;
}

/// Returns the list's bytes, without its head.
pub fn parts(log: *const ReadLog, slot: *const Slot) BlockChains.Parts {
    return log.chains.?.parts(&slot.chain);
}

/// Returns the bytes of an account; null: it is not there, or not whole.
pub fn accountParts(log: *const ReadLog, slot: *Slot, kind: wire.AccountKind) ?BlockChains.Parts {
    const account = slot.accountOf(kind);
    return if (account.state == .whole) log.chains.?.parts(&account.chain) else null;
}

/// Frees the slot of a boot.
pub fn release(log: *ReadLog, slot: *Slot) void {
    assert(!slot.boot_id.eql(.zero));
    assert(log.used_count > 0);
    log.chains.?.release(&slot.chain);
    for (&slot.accounts) |*account| log.chains.?.release(&account.chain);
    slot.* = .{};
    log.used_count -= 1;
}

const testing = std.testing;

fn testRead(number: u64) read_list.Read {
    return .{
        .at_us = number,
        .offset = number * 4096,
        .length = 4096,
        .storage_us = 3,
        .is_cold = false,
        .is_ahead = false,
    };
}

test "each boot's READs are listed in order, and its slot is found again" {
    const blocks = try testing.allocator.alloc(BlockChains.Block, 8);
    defer testing.allocator.free(blocks);
    var log: ReadLog = try .init(testing.allocator, blocks, 2);
    defer log.deinit(testing.allocator);
    var hints: [3]u16 = @splat(0);
    for (0..600) |number| for (&hints, 1..) |*hint, boot| {
        log.add(.fromRandom(@splat(@intCast(boot))), hint, &testRead(number));
    };
    // The third boot had no slot.
    try testing.expectEqual(600, log.dropped);
    for (log.slots) |*slot| {
        var bytes: std.ArrayList(u8) = .empty;
        defer bytes.deinit(testing.allocator);
        const head = read_list.encodeHead(&.{
            .boot_id = slot.boot_id,
            .version_id = .zero,
            .started_unix_ms = 0,
            .dropped = slot.dropped,
        });
        try bytes.appendSlice(testing.allocator, &head);
        var iterator = log.parts(slot);
        while (iterator.next()) |part| try bytes.appendSlice(testing.allocator, part);
        const list = try read_list.parse(bytes.items);
        try testing.expectEqual(600, list.count());
        for (0..600) |number| try testing.expectEqual(number * 4096, list.get(number).offset());
        log.release(slot);
    }
    log.add(.fromRandom(@splat(3)), &hints[2], &testRead(1));
    try testing.expectEqual(600, log.dropped);
    try testing.expectEqual(1, log.used_count);
}

test "a device that reads without end fills no more than its list, and leaves room for others" {
    const blocks_max = 900;
    const blocks = try testing.allocator.alloc(BlockChains.Block, blocks_max);
    defer testing.allocator.free(blocks);
    var log: ReadLog = try .init(testing.allocator, blocks, 4);
    defer log.deinit(testing.allocator);
    var hints: [2]u16 = @splat(0);
    for (0..1_000_000) |number|
        log.add(.fromRandom(@splat(1)), &hints[0], &testRead(number));
    const flooded = &log.slots[hints[0]];
    try testing.expectEqual(read_list.records_max * read_list.record_size, flooded.chain.size);
    try testing.expectEqual(1_000_000 - read_list.records_max, flooded.dropped);
    // 782 blocks are the first device's; the second gets what is left.
    for (0..100_000) |number|
        log.add(.fromRandom(@splat(2)), &hints[1], &testRead(number));
    const other = &log.slots[hints[1]];
    try testing.expectEqual((blocks_max - 782) * 256, other.chain.size / read_list.record_size);
    try testing.expect(other.dropped > 0);
    log.release(flooded);
    log.release(other);
    try testing.expectEqual(blocks_max, log.chains.?.freeCount());
}

test "without memory nothing is listed" {
    var log: ReadLog = .none;
    var hint: u16 = 0;
    log.add(.fromRandom(@splat(1)), &hint, &testRead(1));
    try testing.expectEqual(0, log.dropped);
}

test "an account is kept whole or not at all, in the order of its parts, each once" {
    const blocks = try testing.allocator.alloc(BlockChains.Block, 40);
    defer testing.allocator.free(blocks);
    var log: ReadLog = try .init(testing.allocator, blocks, 2);
    defer log.deinit(testing.allocator);
    const boot: base.Uuid = .fromRandom(@splat(1));
    var hint: u16 = 0;
    var part: wire.Account = .{ .kind = .units, .part = 0, .is_last = false, .bytes = "abc" };
    // The boot's list was taken: nobody waits for this.
    log.addAccount(boot, &hint, true, &part);
    try testing.expectEqual(0, log.used_count);
    for (0..2) |_| log.addAccount(boot, &hint, false, &part);
    const slot = &log.slots[hint];
    try testing.expectEqual(null, log.accountParts(slot, .units));
    part = .{ .kind = .units, .part = 1, .is_last = true, .bytes = "de" };
    for (0..2) |_| log.addAccount(boot, &hint, true, &part);
    var found = log.accountParts(slot, .units).?;
    try testing.expectEqualStrings("abcde", found.next().?);
    try testing.expectEqual(null, found.next());
    // One that is missing.
    part = .{ .kind = .block_trace, .part = 1, .is_last = true, .bytes = "x" };
    log.addAccount(boot, &hint, true, &part);
    try testing.expectEqual(.broken, slot.accountOf(.block_trace).state);
    part.part = 0;
    log.addAccount(boot, &hint, true, &part);
    try testing.expectEqual(null, log.accountParts(slot, .block_trace));
    log.release(slot);
    // More than an account may have.
    const bytes: [wire.account_part_size_max]u8 = @splat(7);
    for (0..400) |number| log.addAccount(boot, &hint, false, &.{
        .kind = .block_trace,
        .part = @intCast(number),
        .is_last = false,
        .bytes = &bytes,
    });
    try testing.expectEqual(.broken, log.slots[hint].accountOf(.block_trace).state);
    try testing.expectEqual(0, log.slots[hint].accountOf(.block_trace).chain.size);
    log.release(&log.slots[hint]);
    try testing.expectEqual(0, log.used_count);
}
