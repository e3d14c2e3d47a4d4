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
pub const runs_us_max = std.time.us_per_day;
/// A search for slots to give up reads every boot: one that found few is not repeated before.
pub const search_interval_us = 100 * std.time.us_per_ms;
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
    const generations = try base.allocZeroed(gpa, u32, 0, capacity);
    errdefer base.freeZeroed(gpa, u32, generations);
    const serials = try base.allocZeroed(gpa, u64, 0, capacity);
    errdefer base.freeZeroed(gpa, u64, serials);
    var by_id: base.SlotIndex(u128) = try .init(gpa, capacity, options.seed);
    errdefer by_id.deinit(gpa);
    var by_mac: base.SlotIndex(u48) = try .init(gpa, capacity, options.seed);
    errdefer by_mac.deinit(gpa);
    var by_handle: base.SlotIndex(u64) = try .init(gpa, capacity, options.seed);
    errdefer by_handle.deinit(gpa);
    const by_ip: base.SlotIndex(u32) = try .init(gpa, capacity, options.seed);
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
    base.freeZeroed(gpa, u32, table.generations);
    base.freeZeroed(gpa, u64, table.serials);
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
