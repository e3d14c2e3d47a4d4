//! All boots that this edge knows: those in progress and, while slots are free, those that are
//! over, since their devices still read. Fixed size; boots are found by indices, and a slot that
//! was never used takes no memory. Pure: no clock, no randomness. Invariants: `active_count` boots
//! are not over, a stale reference finds nothing, and a boot that may still run gives up its slot
//! only to a later one of its device that has proved itself.

const std = @import("std");
const base = @import("base");
const Boot = @import("boot.zig");
const boot_phase = @import("phase.zig");
const assert = std.debug.assert;

pub const BootTable = @This();

/// Undefined where a slot is free.
slots: []Boot,
free_slots: base.SlotSet,
/// Boot ids are never zero: a slot without one is free.
by_id: base.SlotIndex(u128),
/// No device has the zero address (`Mac.isDevice`). The newest boot of a device comes first.
by_mac: base.SlotIndex(u48),
by_handle: base.SlotIndex(u64),
/// Boots in progress whose device's address is known.
by_ip: base.SlotIndex(u32),
/// Incremented with each use of a slot, so that an old reference finds nothing.
generations: []u32,
/// Order of insertion; the greatest serial of a MAC address is its latest boot.
serials: []u64,
next_serial: u64 = 1,
count: u32 = 0,
active_count: u32 = 0,
/// Boots of unregistered devices.
unregistered_count: u32 = 0,
/// The slots that they share; the others are for registered devices alone.
unregistered_max: u32,
/// Upper limit of silence; null: only the phases' own limits apply.
silence_limit_us: ?u64 = null,
/// By `Which`: what the last search for slots to give up has found.
found: [2]Found = @splat(.{}),

/// A device that was heard this lately may still run, also where it has no session.
const runs_us_max = std.time.us_per_day;
/// A search for slots to give up reads every boot: one that found few is not repeated before.
const search_interval_us = 100 * std.time.us_per_ms;
/// Boots in progress at one address that are looked at: many only where nothing proves an address.
const boots_of_address_max = 16;

pub const Ref = struct { index: u32, generation: u32 };

/// `Full`: every slot holds a boot in progress, one that may still run, or one whose end is not
/// reported yet.
pub const BeginError = error{Full};

const Which = enum(u1) { any, unregistered };

const Found = struct {
    /// The oldest boot last.
    refs: base.BoundedArray(Ref, 32) = .empty,
    /// When a search found fewer than `refs` holds.
    searched_us: ?u64 = null,
};

pub const Options = struct {
    capacity: u32,
    /// Random where strangers choose MAC addresses and addresses.
    seed: u64 = 0,
};

pub fn init(gpa: std.mem.Allocator, options: Options) error{OutOfMemory}!BootTable {
    const capacity = options.capacity;
    assert(capacity > 0);
    const slots = try base.allocUntouched(gpa, Boot, capacity);
    errdefer base.freeUntouched(gpa, Boot, slots);
    var free_slots: base.SlotSet = try .initFull(gpa, capacity);
    errdefer free_slots.deinit(gpa);
    const generations = try gpa.alloc(u32, capacity);
    errdefer gpa.free(generations);
    const serials = try gpa.alloc(u64, capacity);
    errdefer gpa.free(serials);
    var by_id: base.SlotIndex(u128) = try .init(gpa, capacity, options.seed);
    errdefer by_id.deinit(gpa);
    var by_mac: base.SlotIndex(u48) = try .init(gpa, capacity, options.seed);
    errdefer by_mac.deinit(gpa);
    var by_handle: base.SlotIndex(u64) = try .init(gpa, capacity, options.seed);
    errdefer by_handle.deinit(gpa);
    const by_ip: base.SlotIndex(u32) = try .init(gpa, capacity, options.seed);
    @memset(generations, 0);
    @memset(serials, 0);
    return .{
        .slots = slots,
        .free_slots = free_slots,
        .by_id = by_id,
        .by_mac = by_mac,
        .by_handle = by_handle,
        .by_ip = by_ip,
        .generations = generations,
        .serials = serials,
        .unregistered_max = capacity,
    };
}

pub fn deinit(table: *BootTable, gpa: std.mem.Allocator) void {
    base.freeUntouched(gpa, Boot, table.slots);
    table.free_slots.deinit(gpa);
    gpa.free(table.generations);
    gpa.free(table.serials);
    table.by_id.deinit(gpa);
    table.by_mac.deinit(gpa);
    table.by_handle.deinit(gpa);
    table.by_ip.deinit(gpa);
    table.* = undefined;
}

pub fn get(table: *BootTable, ref: Ref) ?*Boot {
    if (ref.index >= table.slots.len) return null;
    if (table.generations[ref.index] != ref.generation) return null;
    return if (table.isTaken(ref.index)) &table.slots[ref.index] else null;
}

pub fn isActive(table: *const BootTable, ref: Ref) bool {
    assert(table.generations[ref.index] == ref.generation);
    assert(table.isTaken(ref.index));
    return !table.slots[ref.index].isOver();
}

/// Returns the latest boot of a device, in progress or over.
pub fn findByMac(table: *const BootTable, mac: base.Mac) ?Ref {
    return table.refOf(table.by_mac.first(mac.toInt()) orelse return null);
}

/// Iterates over a device's boots, the latest first. The caller may remove the one that it has.
pub fn iterateOf(table: *const BootTable, mac: base.Mac) DeviceIterator {
    return .{ .table = table, .mac = mac.toInt(), .slot = table.by_mac.first(mac.toInt()) };
}

pub const DeviceIterator = struct {
    table: *const BootTable,
    mac: u48,
    slot: ?u32,

    pub fn next(iterator: *DeviceIterator) ?Ref {
        const slot = iterator.slot orelse return null;
        const by_mac = &iterator.table.by_mac;
        if (by_mac.keys[slot] != iterator.mac) return null;
        iterator.slot = by_mac.next(slot);
        return iterator.table.refOf(slot);
    }
};

/// Returns whether a boot was inserted before another.
pub fn isEarlier(table: *const BootTable, ref: Ref, other: Ref) bool {
    return table.serials[ref.index] < table.serials[other.index];
}

pub fn findByHandle(table: *const BootTable, handle: u64) ?Ref {
    return table.refOf(table.by_handle.first(handle) orelse return null);
}

pub fn findById(table: *const BootTable, id: base.Uuid) ?Ref {
    return table.refOf(table.by_id.first(idKey(id)) orelse return null);
}

/// Returns the boot with this id if it is in this slot: for callers that remember the slot.
pub fn findAt(table: *const BootTable, index: u32, id: base.Uuid) ?Ref {
    if (index >= table.slots.len or id.eql(.zero)) return null;
    return if (table.by_id.keys[index] == idKey(id)) table.refOf(index) else null;
}

/// Prefetches the fields that a READ and its answer touch; in a large table few of them are
/// cached.
pub fn prefetch(table: *const BootTable, index: u32) void {
    if (index >= table.slots.len or !table.isTaken(index)) return;
    const boot = &table.slots[index];
    inline for (.{
        &boot.last_us,
        &boot.started_us,
        &boot.failover,
        &boot.phases[@backingInt(boot_phase.Phase.stage2)],
        &boot.last_packets,
        &boot.read_ahead,
        &boot.read_times.initramfs.bytes,
        &boot.read_times.initramfs.warm,
        &boot.read_times.initramfs.send,
        &boot.facts.mtu,
        &boot.whole_retransmits_in_row,
        &boot.stream_was_open,
        &boot.suspicion,
        &boot.is_superseded,
        &boot.outcome,
        &boot.changed,
    }) |field| base.prefetch(field);
}

/// Notes the address of a boot's device.
pub fn setAddress(table: *BootTable, boot: *Boot, ip: base.Ip4, is_confirmed: bool) void {
    boot.facts.ip = ip;
    boot.facts.is_ip_confirmed = is_confirmed;
    table.indexAddress(table.slotOf(boot));
    assert(boot.isAt(ip) == is_confirmed);
}

fn indexAddress(table: *BootTable, slot: u32) void {
    assert(table.isTaken(slot));
    const boot = &table.slots[slot];
    const ip: base.Ip4 = if (boot.isOver()) .zero else boot.facts.ip orelse .zero;
    table.by_ip.set(slot, ip.toInt());
}

/// Returns the latest boot in progress whose device has this address, for requests that name no
/// boot.
pub fn findActiveByIp(table: *const BootTable, ip: base.Ip4) ?Ref {
    var best: ?u32 = null;
    var boots: AddressIterator = .{ .table = table, .slot = table.by_ip.first(ip.toInt()) };
    while (boots.next()) |slot| {
        if (best == null or table.serials[slot] > table.serials[best.?]) best = slot;
    }
    return table.refOf(best orelse return null);
}

/// Returns the only boot in progress whose device has this address, for reports that name no
/// boot. A boot with a session counts before candidates, which anybody can begin.
pub fn onlyActiveByIp(table: *const BootTable, ip: base.Ip4) error{ None, Several }!Ref {
    var only: ?u32 = null;
    var is_several = false;
    var boots: AddressIterator = .{ .table = table, .slot = table.by_ip.first(ip.toInt()) };
    while (boots.next()) |slot| {
        const boot = &table.slots[slot];
        if (only) |other| {
            const has_session = table.slots[other].stream_was_open;
            if (has_session and !boot.stream_was_open) continue;
            is_several = has_session == boot.stream_was_open;
        }
        only = slot;
    }
    if (is_several or boots.slot != null) return error.Several;
    return table.refOf(only orelse return error.None);
}

const AddressIterator = struct {
    table: *const BootTable,
    slot: ?u32,
    steps: u32 = 0,

    fn next(iterator: *AddressIterator) ?u32 {
        const slot = iterator.slot orelse return null;
        if (iterator.steps == boots_of_address_max) return null;
        iterator.steps += 1;
        iterator.slot = iterator.table.by_ip.next(slot);
        const boot = &iterator.table.slots[slot];
        assert(!boot.isOver());
        assert(boot.facts.ip.?.toInt() == iterator.table.by_ip.keys[slot]);
        return slot;
    }
};

/// Inserts a boot beside its device's others. Those that are over and cannot run give up their
/// slots; a full table evicts the oldest such boot of any device.
pub fn insert(table: *BootTable, boot: Boot, now_us: u64) BeginError!Ref {
    assert(boot.identity.mac.isDevice());
    assert(boot.identity.handle != 0);
    assert(!boot.identity.id.eql(.zero));
    table.forgetEnded(boot.identity.mac);
    if (boot.is_unregistered and table.unregistered_count >= table.unregistered_max) {
        table.clear(table.takeOver(now_us, .unregistered) orelse return error.Full);
        assert(table.unregistered_count < table.unregistered_max or
            table.unregistered_max < table.slots.len);
    }
    const slot = table.takeFreeSlot(now_us) orelse return error.Full;
    table.slots[slot] = boot;
    table.by_id.put(slot, idKey(boot.identity.id));
    table.by_mac.put(slot, boot.identity.mac.toInt());
    table.by_handle.put(slot, boot.identity.handle);
    table.indexAddress(slot);
    table.generations[slot] +%= 1;
    table.serials[slot] = table.next_serial;
    table.next_serial += 1;
    table.count += 1;
    if (!boot.isOver()) table.active_count += 1;
    table.unregistered_count += @intFromBool(boot.is_unregistered);
    if (boot.isProved()) table.onProved(table.refOf(slot));
    assert(table.isTaken(slot));
    assert(table.count <= table.slots.len);
    return table.refOf(slot);
}

/// Clears boots of a device that are over and had no session. One whose disk its firmware reads
/// stays until the disk of a later one is read; one in which the device has shown its key, until a
/// later one proves itself: a candidate can turn out to be none.
fn forgetEnded(table: *BootTable, mac: base.Mac) void {
    var has_read = false;
    var has_key = false;
    var others = table.iterateOf(mac);
    while (others.next()) |ref| {
        const boot = &table.slots[ref.index];
        if (!boot.isOver() or boot.changed or boot.isRunning()) continue;
        const is_read = boot.record(.stage1) != null and !has_read;
        const shows_key = boot.device_key != null and boot.device_identity.state == .known and
            !has_key;
        has_read = has_read or is_read;
        has_key = has_key or shows_key;
        if (!is_read and !shows_key) table.clear(ref.index);
    }
}

/// The device may still read in this boot: it has had a session, or its firmware reads the disk.
fn mayRun(boot: *const Boot, now_us: u64) bool {
    if (boot.isRunning()) return now_us -| boot.heardAt() < runs_us_max;
    if (boot.record(.stage1) == null or boot.hasSuccessor()) return false;
    return now_us -| boot.downloadedAt() < runs_us_max;
}

/// The device has proved itself in this boot: it no longer reads in its others, of which those that
/// are over give up their slots.
pub fn onProved(table: *BootTable, latest: Ref) void {
    assert(table.slots[latest.index].isProved());
    var others = table.iterateOf(table.slots[latest.index].identity.mac);
    while (others.next()) |ref| {
        if (ref.index == latest.index) continue;
        const other = &table.slots[ref.index];
        if (other.isOver() and !other.changed) table.clear(ref.index);
    }
}

/// Every event passes through here, so that `active_count` stays right.
pub fn apply(table: *BootTable, ref: Ref, now_us: u64, event: Boot.Event) void {
    const boot = table.get(ref) orelse return;
    const was_over = boot.isOver();
    const was_proved = boot.isProved();
    boot.apply(now_us, event);
    table.countEnd(was_over, ref.index);
    if (!was_proved and boot.isProved()) table.onProved(ref);
}

pub fn supersede(table: *BootTable, ref: Ref, now_us: u64) void {
    const boot = table.get(ref) orelse return;
    const was_over = boot.isOver();
    boot.supersede(now_us);
    assert(boot.isOver());
    table.countEnd(was_over, ref.index);
}

/// Replaces a boot by a later state of the same boot.
pub fn replace(table: *BootTable, ref: Ref, boot: Boot) void {
    const slot = table.get(ref).?;
    assert(slot.identity.id.eql(boot.identity.id));
    assert(slot.identity.mac.eql(boot.identity.mac));
    assert(slot.is_unregistered == boot.is_unregistered);
    if (!slot.isOver()) table.active_count -= 1;
    if (!boot.isOver()) table.active_count += 1;
    slot.* = boot;
    table.by_handle.set(ref.index, boot.identity.handle);
    table.indexAddress(ref.index);
    if (boot.isProved()) table.onProved(ref);
}

/// Removes a boot, in progress or over, that turned out not to be one.
pub fn remove(table: *BootTable, ref: Ref) void {
    const boot = table.get(ref) orelse return;
    if (!boot.isOver()) table.active_count -= 1;
    table.free(ref.index);
}

/// Ends boots that have been silent for too long.
pub fn tick(table: *BootTable, now_us: u64) void {
    var iterator = table.iterate();
    while (iterator.next()) |boot| {
        const was_over = boot.isOver();
        boot.tick(now_us, table.silence_limit_us);
        table.countEnd(was_over, table.slotOf(boot));
    }
}

/// Iterates over all boots, in no particular order.
pub fn iterate(table: *BootTable) Iterator {
    return .{ .table = table };
}

pub const Iterator = struct {
    table: *BootTable,
    index: u32 = 0,

    pub fn next(iterator: *Iterator) ?*Boot {
        // Scans the compact column: the slots take MiB, and most are usually free.
        const rest = iterator.table.by_id.keys[iterator.index..];
        for (rest, iterator.index..) |id, index| if (id != 0) {
            iterator.index = @intCast(index + 1);
            return &iterator.table.slots[index];
        };
        iterator.index = @intCast(iterator.table.slots.len);
        return null;
    }
};

/// Returns whether the indices have every boot, and nothing else; for simulations.
pub fn isSound(table: *BootTable) bool {
    if (!table.by_id.isSound() or !table.by_mac.isSound()) return false;
    if (!table.by_handle.isSound() or !table.by_ip.isSound()) return false;
    var count: u32 = 0;
    for (table.slots, 0..) |*boot, index| {
        const is_free = table.free_slots.isSet(@intCast(index));
        if (is_free == table.isTaken(@intCast(index))) return false;
        if (is_free) {
            if (table.by_mac.keys[index] != 0 or table.by_handle.keys[index] != 0) return false;
            if (table.by_ip.keys[index] != 0) return false;
            continue;
        }
        count += 1;
        const ip: base.Ip4 = if (boot.isOver()) .zero else boot.facts.ip orelse .zero;
        if (table.by_id.keys[index] != idKey(boot.identity.id)) return false;
        if (table.by_mac.keys[index] != boot.identity.mac.toInt()) return false;
        if (table.by_handle.keys[index] != boot.identity.handle) return false;
        if (table.by_ip.keys[index] != ip.toInt()) return false;
    }
    return count == table.count;
}

fn idKey(id: base.Uuid) u128 {
    return std.mem.readInt(u128, &id.bytes, .big);
}

fn countEnd(table: *BootTable, was_over: bool, slot: u32) void {
    if (was_over or !table.slots[slot].isOver()) return;
    assert(table.active_count > 0);
    table.active_count -= 1;
    table.by_ip.set(slot, 0);
}

fn isTaken(table: *const BootTable, slot: u32) bool {
    return table.by_id.keys[slot] != 0;
}

fn slotOf(table: *const BootTable, boot: *const Boot) u32 {
    const slot = boot - table.slots.ptr;
    assert(slot < table.slots.len);
    return @intCast(slot);
}

fn refOf(table: *const BootTable, index: u32) Ref {
    assert(index < table.slots.len);
    return .{ .index = index, .generation = table.generations[index] };
}

fn clear(table: *BootTable, slot: u32) void {
    assert(table.slots[slot].isOver());
    table.free(slot);
}

fn free(table: *BootTable, slot: u32) void {
    assert(table.isTaken(slot));
    assert(table.count > 0);
    table.unregistered_count -= @intFromBool(table.slots[slot].is_unregistered);
    table.by_id.remove(slot);
    table.by_mac.remove(slot);
    table.by_handle.remove(slot);
    table.by_ip.set(slot, 0);
    table.slots[slot] = undefined;
    table.free_slots.set(slot);
    table.count -= 1;
}

fn takeFreeSlot(table: *BootTable, now_us: u64) ?u32 {
    if (table.count == table.slots.len)
        table.clear(table.takeOver(now_us, .any) orelse return null);
    const slot = table.free_slots.takeFirst().?;
    assert(!table.isTaken(slot));
    return slot;
}

/// Returns the oldest boot that gives up its slot, as far as the last search knows; null: none
/// does.
fn takeOver(table: *BootTable, now_us: u64, which: Which) ?u32 {
    const found = &table.found[@backingInt(which)];
    for (0..2) |_| {
        while (found.refs.pop()) |ref| {
            if (table.get(ref) == null) continue;
            if (table.givesUp(ref.index, now_us, which)) return ref.index;
        }
        if (found.searched_us) |at_us| if (now_us -| at_us < search_interval_us) return null;
        table.search(now_us, which);
    }
    return null;
}

/// It is over and reported, and its device does not run. The latest boot of a device whose key only
/// this edge knows stays: without it any key would do.
fn givesUp(table: *const BootTable, slot: u32, now_us: u64, which: Which) bool {
    const boot = &table.slots[slot];
    if (which == .unregistered and !boot.is_unregistered) return false;
    if (boot.device_identity.is_only_here and
        table.by_mac.first(boot.identity.mac.toInt()) == slot) return false;
    return boot.isOver() and !boot.changed and !mayRun(boot, now_us);
}

/// Finds the oldest boots that give up their slots.
fn search(table: *BootTable, now_us: u64, which: Which) void {
    const found = &table.found[@backingInt(which)];
    assert(found.refs.count == 0);
    const refs = &found.refs;
    for (table.by_id.keys, 0..) |id, index| {
        const slot: u32 = @intCast(index);
        if (id == 0 or !table.givesUp(slot, now_us, which)) continue;
        const serial = table.serials[slot];
        if (refs.count == refs.buffer.len) {
            if (serial > table.serials[refs.buffer[0].index]) continue;
            std.mem.copyForwards(Ref, refs.buffer[0 .. refs.count - 1], refs.buffer[1..refs.count]);
            refs.count -= 1;
        }
        refs.appendAssumeCapacity(table.refOf(slot));
        var at = refs.count - 1;
        while (at > 0 and table.serials[refs.buffer[at - 1].index] < serial) : (at -= 1)
            std.mem.swap(Ref, &refs.buffer[at], &refs.buffer[at - 1]);
    }
    found.searched_us = if (refs.count == refs.buffer.len) null else now_us;
}

const testing = std.testing;

fn testBoot(number: u8, now_us: u64) Boot {
    return .init(.{
        .id = .fromRandom(@splat(number)),
        .mac = .{ .bytes = .{ 2, 0xbf, 0, 0, 0, number } },
        .handle = @as(u64, number) << 32 | now_us + 1,
        .token = @splat(number),
    }, .{ .version_id = .zero }, now_us, 1_000);
}

/// Opens the first session of a boot.
const test_open: Boot.Event =
    .{ .stream_open = .{ .resumed = false, .mtu = 1500, .cipher = .aegis_128l } };

test "a new boot of a device ends none, and is its latest" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 4 });
    defer table.deinit(testing.allocator);
    const mac = testBoot(1, 0).identity.mac;
    const first = try table.insert(testBoot(1, 0), 0);
    const second = try table.insert(testBoot(1, 50), 50);
    for ([_]Ref{ first, second }) |ref| try testing.expect(!table.get(ref).?.isOver());
    try testing.expectEqual(second, table.findByMac(mac).?);
    try testing.expect(table.isEarlier(first, second));
    try testing.expect(!table.isEarlier(second, first));
    try testing.expectEqual(2, table.active_count);
    _ = try table.insert(testBoot(2, 0), 50);
    var iterator = table.iterateOf(mac);
    try testing.expectEqual(second, iterator.next().?);
    try testing.expectEqual(first, iterator.next().?);
    try testing.expectEqual(null, iterator.next());
    try testing.expectEqual(null, iterator.next());
    // Free slots are no boots of a device.
    var none = table.iterateOf(.fromInt(0));
    try testing.expectEqual(null, none.next());
}

test "a device keeps the boot that it runs in until a later one has proved itself" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 4 });
    defer table.deinit(testing.allocator);
    const runs = try table.insert(testBoot(1, 0), 0);
    table.apply(runs, 1, test_open);
    table.apply(runs, 2, .{ .ready = .stream });
    table.get(runs).?.changed = false;
    for (10..14) |round| {
        const other = try table.insert(testBoot(1, round), round);
        table.apply(other, round, .nbp_begin);
        table.get(other).?.tick(round + std.time.us_per_day, null);
        table.get(other).?.changed = false;
        try testing.expect(table.get(runs) != null);
        try testing.expectEqual(2, table.count);
    }
    const again = try table.insert(testBoot(1, 20), 20);
    // One whose end is not reported yet stays.
    table.get(runs).?.changed = true;
    table.apply(again, 21, test_open);
    try testing.expectEqual(2, table.count);
    table.get(runs).?.changed = false;
    table.onProved(again);
    try testing.expectEqual(null, table.get(runs));
    try testing.expectEqual(1, table.count);
}

test "a full table keeps a device that was heard within a day, and one that reads by firmware" {
    const day = std.time.us_per_day;
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 2 });
    defer table.deinit(testing.allocator);
    const streams = try table.insert(testBoot(1, 0), 0);
    table.apply(streams, 0, test_open);
    const reads = try table.insert(testBoot(2, 0), 0);
    table.apply(reads, 0, .{ .stage1_read = .{ .size = 512 } });
    for ([_]Ref{ streams, reads }) |ref| {
        table.apply(ref, 0, .{ .ready = .http });
        table.get(ref).?.changed = false;
    }
    try testing.expectError(error.Full, table.insert(testBoot(3, 0), day - search_interval_us));
    table.apply(streams, 5, .{
        .stream_read = .{ .size = 512, .attempt = 0, .missing_fragments = 0 },
    });
    // The older one is heard still.
    _ = try table.insert(testBoot(3, 0), day);
    try testing.expectEqual(null, table.get(reads));
    try testing.expectError(error.Full, table.insert(testBoot(4, 0), day + 4));
    _ = try table.insert(testBoot(4, 0), day + 4 + search_interval_us);
    try testing.expectEqual(null, table.get(streams));
}

test "of disks that firmware reads, a device keeps the latest" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 8 });
    defer table.deinit(testing.allocator);
    var latest: ?Ref = null;
    for (0..4) |round| {
        const ref = try table.insert(testBoot(1, round), round);
        if (latest) |known| try testing.expect(table.get(known) != null);
        try testing.expect(table.count <= 2);
        table.apply(ref, round, .{ .stage1_read = .{ .size = 512 } });
        table.apply(ref, round, .{ .ready = .http });
        table.get(ref).?.changed = false;
        latest = ref;
    }
}

test "a removed boot leaves no trace" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 2 });
    defer table.deinit(testing.allocator);
    const none = try table.insert(testBoot(1, 0), 0);
    const other = try table.insert(testBoot(2, 0), 0);
    table.remove(none);
    table.remove(none);
    try testing.expectEqual(1, table.count);
    try testing.expectEqual(1, table.active_count);
    try testing.expectEqual(null, table.get(none));
    try testing.expectEqual(null, table.findByMac(testBoot(1, 0).identity.mac));
    const gone = testBoot(1, 0).identity;
    try testing.expectEqual(null, table.findByHandle(gone.handle));
    try testing.expectEqual(null, table.findById(gone.id));
    try testing.expectEqual(null, table.findAt(none.index, gone.id));
    for ([_]u64{ 0, 1 }) |handle| try testing.expectEqual(null, table.findByHandle(handle));
    try testing.expectEqual(other, table.findByMac(testBoot(2, 0).identity.mac).?);
}

test "a full table evicts only boots that are over and reported" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 2 });
    defer table.deinit(testing.allocator);
    const first = try table.insert(testBoot(1, 0), 0);
    _ = try table.insert(testBoot(2, 0), 0);
    try testing.expectError(error.Full, table.insert(testBoot(3, 0), 0));
    table.supersede(first, 10);
    try testing.expectError(error.Full, table.insert(testBoot(3, 0), 0));
    table.get(first).?.changed = false;
    // The search is not repeated for every request.
    try testing.expectError(error.Full, table.insert(testBoot(3, 0), search_interval_us - 1));
    const third = try table.insert(testBoot(3, 0), search_interval_us);
    try testing.expectEqual(null, table.get(first));
    try testing.expectEqual(third, table.findByHandle(testBoot(3, 0).identity.handle).?);
    try testing.expectEqual(null, table.findByHandle(0));
    try testing.expectEqual(2, table.active_count);
}

test "a full table keeps the boot of a device whose key nobody else knows" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 2 });
    defer table.deinit(testing.allocator);
    var boot = testBoot(1, 0);
    boot.device_identity = .{ .state = .{ .known = @splat(7) }, .is_only_here = true };
    const keeper = try table.insert(boot, 0);
    const other = try table.insert(testBoot(2, 0), 0);
    for ([_]Ref{ keeper, other }) |ref| {
        table.supersede(ref, 1);
        table.get(ref).?.changed = false;
    }
    const latest = try table.insert(testBoot(3, 0), search_interval_us);
    try testing.expect(table.get(keeper) != null);
    try testing.expectEqual(null, table.get(other));
    table.supersede(latest, 2);
    table.get(latest).?.changed = false;
    // The state has it now.
    table.get(keeper).?.device_identity.noteStated(.{
        .state = .{ .known = @splat(7) },
        .revision = 0,
    });
    for (4..6) |number|
        _ = try table.insert(testBoot(@intCast(number), 0), number * search_interval_us);
    try testing.expectEqual(null, table.get(keeper));
}

test "unregistered devices share a part, and none that runs gives up its slot" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 5 });
    defer table.deinit(testing.allocator);
    table.unregistered_max = 2;
    var refs: [2]Ref = undefined;
    for (&refs, 1..) |*ref, number| {
        var boot = testBoot(@intCast(number), 0);
        boot.is_unregistered = true;
        ref.* = try table.insert(boot, 0);
    }
    for ([_]Boot.Event{ test_open, .{ .ready = .stream } }) |event| table.apply(refs[0], 0, event);
    for (refs) |ref| table.get(ref).?.changed = false;
    var late = testBoot(4, 0);
    late.is_unregistered = true;
    try testing.expectError(error.Full, table.insert(late, 0));
    const later_us = search_interval_us;
    // Registered devices have the other slots, and take none of these.
    for (5..8) |number| _ = try table.insert(testBoot(@intCast(number), 0), 0);
    try testing.expectError(error.Full, table.insert(testBoot(8, 0), runs_us_max - later_us));
    table.apply(refs[1], 0, .{ .failed = .{ .cause = .store_read_error } });
    table.get(refs[1]).?.changed = false;
    _ = try table.insert(late, later_us);
    try testing.expectEqual(null, table.get(refs[1]));
    try testing.expectEqual(2, table.unregistered_count);
    // Whoever has not been heard for a day does not run any more.
    _ = try table.insert(testBoot(8, 0), runs_us_max);
    try testing.expectEqual(null, table.get(refs[0]));
    try testing.expectEqual(1, table.unregistered_count);
}

test "a device in a boot loop takes one slot, and a device that keeps running keeps its own" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 3 });
    defer table.deinit(testing.allocator);
    const runs = try table.insert(testBoot(1, 0), 0);
    table.supersede(runs, 1);
    table.get(runs).?.changed = false;
    for (0..10) |round| {
        const ref = try table.insert(testBoot(2, round), round);
        table.apply(ref, round, .{ .failed = .{ .cause = .store_read_error } });
        table.get(ref).?.changed = false;
    }
    try testing.expect(table.get(runs) != null);
    try testing.expectEqual(2, table.count);
}

test "boots are found by id and, while in progress, by address" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 4 });
    defer table.deinit(testing.allocator);
    const ref = try table.insert(testBoot(1, 0), 0);
    table.setAddress(table.get(ref).?, .init(10, 0, 0, 9), false);
    try testing.expectEqual(ref, table.findById(.fromRandom(@splat(1))).?);
    try testing.expectEqual(ref, table.findAt(ref.index, .fromRandom(@splat(1))).?);
    try testing.expectEqual(null, table.findAt(ref.index, .fromRandom(@splat(2))));
    try testing.expectEqual(null, table.findAt(ref.index + 1, .fromRandom(@splat(1))));
    try testing.expectEqual(null, table.findAt(ref.index + 1, .zero));
    try testing.expectEqual(null, table.findAt(4, .fromRandom(@splat(1))));
    try testing.expectEqual(ref, table.findActiveByIp(.init(10, 0, 0, 9)).?);
    try testing.expectEqual(ref, try table.onlyActiveByIp(.init(10, 0, 0, 9)));
    try testing.expectError(error.None, table.onlyActiveByIp(.init(10, 0, 0, 8)));
    const other = try table.insert(testBoot(2, 0), 0);
    table.setAddress(table.get(other).?, .init(10, 0, 0, 9), false);
    try testing.expectError(error.Several, table.onlyActiveByIp(.init(10, 0, 0, 9)));
    // Of two, the one with a session is meant.
    table.apply(ref, 1, test_open);
    try testing.expectEqual(ref, try table.onlyActiveByIp(.init(10, 0, 0, 9)));
    const last = try table.insert(testBoot(3, 0), 0);
    table.setAddress(table.get(last).?, .init(10, 0, 0, 9), false);
    try testing.expectEqual(ref, try table.onlyActiveByIp(.init(10, 0, 0, 9)));
    table.apply(last, 1, test_open);
    try testing.expectError(error.Several, table.onlyActiveByIp(.init(10, 0, 0, 9)));
    for ([_]Ref{ other, last }) |over| table.supersede(over, 1);
    table.apply(ref, 5, .{ .failed = .{ .cause = .store_read_error } });
    try testing.expectEqual(null, table.findActiveByIp(.init(10, 0, 0, 9)));
    try testing.expectEqual(ref, table.findById(.fromRandom(@splat(1))).?);
}

test "a table that cannot have all of its memory takes none" {
    const Make = struct {
        fn make(gpa: std.mem.Allocator) !void {
            var table: BootTable = try .init(gpa, .{ .capacity = 2 });
            table.deinit(gpa);
        }
    };
    try testing.checkAllAllocationFailures(testing.allocator, Make.make, .{});
}

test "an empty table has no boot, by whatever it is looked for" {
    const gpa = testing.allocator;
    // Memory that an earlier use left behind.
    for ([_]u8{ 0, 1, 0xaa }) |byte| {
        const dirty = try gpa.alloc(u8, 64 << 10);
        @memset(dirty, byte);
        gpa.free(dirty);
        var table: BootTable = try .init(gpa, .{ .capacity = 2 });
        defer table.deinit(gpa);
        try testing.expect(table.isSound());
        for ([_]u64{ 0, 1, 0xaaaa_aaaa_aaaa_aaaa }) |handle|
            try testing.expectEqual(null, table.findByHandle(handle));
        for ([_]u48{ 0, 1, 0xaaaa_aaaa_aaaa }) |mac|
            try testing.expectEqual(null, table.findByMac(.fromInt(mac)));
        try testing.expectEqual(null, table.findActiveByIp(.init(10, 0, 0, 9)));
        for (0..3) |index| for (table.generations) |generation|
            try testing.expectEqual(
                null,
                table.get(.{ .index = @intCast(index), .generation = generation }),
            );
        var iterator = table.iterate();
        try testing.expectEqual(null, iterator.next());
    }
}

test "a device may have the lowest address" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 2 });
    defer table.deinit(testing.allocator);
    var boot = testBoot(1, 0);
    boot.identity.mac = .fromInt(1);
    const ref = try table.insert(boot, 0);
    try testing.expectEqual(ref, table.findByMac(.fromInt(1)).?);
}

test "of several boots of an address the latest counts, wherever it lies" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 3 });
    defer table.deinit(testing.allocator);
    const ip: base.Ip4 = .init(10, 0, 0, 9);
    const first = try table.insert(testBoot(1, 0), 0);
    const second = try table.insert(testBoot(2, 0), 0);
    for ([_]Ref{ first, second }) |ref| table.setAddress(table.get(ref).?, ip, true);
    try testing.expectEqual(second, table.findActiveByIp(ip).?);
    // The slot of the first is used again.
    table.remove(first);
    const third = try table.insert(testBoot(3, 0), 0);
    try testing.expectEqual(first.index, third.index);
    table.setAddress(table.get(third).?, ip, true);
    try testing.expectEqual(third, table.findActiveByIp(ip).?);
    try testing.expectEqual(null, table.get(first));
}

test "a full table evicts the boot that was inserted first" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 2 });
    defer table.deinit(testing.allocator);
    var refs: [2]Ref = undefined;
    refs[0] = try table.insert(testBoot(1, 0), 0);
    refs[1] = try table.insert(testBoot(2, 0), 0);
    // The older one may lie behind the younger one.
    for (0..3) |round| {
        const old, const young = .{ refs[round % 2], refs[(round + 1) % 2] };
        for (refs) |ref| {
            table.supersede(ref, 1);
            table.get(ref).?.changed = false;
        }
        const now_us = round * search_interval_us;
        refs[round % 2] = try table.insert(testBoot(@intCast(10 + round), 0), now_us);
        try testing.expectEqual(null, table.get(old));
        try testing.expect(table.get(young) != null);
    }
}

test "a boot from the journal takes the slot of its device's earlier one, and keeps its own" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 4 });
    defer table.deinit(testing.allocator);
    var refs: [2]Ref = undefined;
    for (&refs, 0..) |*ref, round| {
        var boot = testBoot(1, round);
        boot.apply(round, test_open);
        boot.apply(round, .{ .ready = .stream });
        boot.changed = false;
        ref.* = try table.insert(boot, round);
    }
    try testing.expectEqual(null, table.get(refs[0]));
    try testing.expect(table.get(refs[1]) != null);
    try testing.expectEqual(1, table.count);
    try testing.expectEqual(0, table.active_count);
    // One that was no more than a candidate when it was read proves itself by a later record.
    var later = testBoot(1, 7);
    later.changed = false;
    const ref = try table.insert(later, 7);
    try testing.expectEqual(2, table.count);
    later.apply(8, test_open);
    table.replace(ref, later);
    try testing.expectEqual(null, table.get(refs[1]));
    try testing.expectEqual(1, table.count);
}

test "the boot that has shown the device's key stays until a later one proves itself" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 4 });
    defer table.deinit(testing.allocator);
    const key: [32]u8 = @splat(7);
    var refs: [2]Ref = undefined;
    for (&refs, 0..) |*ref, round| {
        var boot = testBoot(1, round);
        boot.device_identity.state = .{ .known = key };
        boot.device_key = .{ .label = .key_known, .key = key };
        boot.apply(round, test_open);
        boot.supersede(round);
        boot.changed = false;
        ref.* = try table.insert(boot, round);
    }
    // It inherits the key, and is none: the device has taken another edge's answer.
    for (2..5) |round| {
        var candidate = testBoot(1, round);
        candidate.device_identity = table.get(table.findByMac(candidate.identity.mac).?).?
            .device_identity;
        const ref = try table.insert(candidate, round);
        try testing.expectEqual(null, table.get(refs[0]));
        if (round < 4) table.remove(ref) else table.apply(ref, round, test_open);
    }
    try testing.expectEqual(null, table.get(refs[1]));
    const last = table.get(table.findByMac(testBoot(1, 0).identity.mac).?).?;
    try testing.expectEqual(key, last.device_identity.state.known);
    try testing.expectEqual(1, table.count);
}

test "a later state replaces its boot, with its handle, and is counted by whether it is over" {
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 2 });
    defer table.deinit(testing.allocator);
    const ref = try table.insert(testBoot(1, 0), 0);
    _ = try table.insert(testBoot(2, 0), 0);
    for ([_]bool{ true, true, false, false }, 1..) |is_over, handle| {
        var boot = testBoot(1, 0);
        boot.identity.handle = handle;
        boot.reconnects = handle;
        if (is_over) boot.supersede(1);
        table.replace(ref, boot);
        try testing.expectEqual(handle, table.get(ref).?.reconnects);
        try testing.expectEqual(ref, table.findByHandle(handle).?);
        try testing.expectEqual(null, table.findByHandle(handle - 1));
        try testing.expectEqual(@as(u32, if (is_over) 1 else 2), table.active_count);
    }
}

test "a silent boot ends and is counted, by the table's limit if that is shorter" {
    for ([_]?u64{ null, std.time.us_per_s }, [_]u64{ 60, 1 }) |limit_us, seconds| {
        var table: BootTable = try .init(testing.allocator, .{ .capacity = 2 });
        defer table.deinit(testing.allocator);
        table.silence_limit_us = limit_us;
        const ref = try table.insert(testBoot(1, 0), 0);
        table.apply(ref, 0, .nbp_begin);
        table.tick(seconds * std.time.us_per_s - 1);
        try testing.expectEqual(1, table.active_count);
        table.tick(seconds * std.time.us_per_s);
        try testing.expectEqual(0, table.active_count);
        try testing.expectEqual(boot_phase.Phase.nbp, table.get(ref).?.outcome.?.silent);
    }
}
