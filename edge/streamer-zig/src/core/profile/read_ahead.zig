//! Reads ahead of demand by the boot profile (packages/proto/STREAM.md, "Boot profile"): plain
//! reads into a cache of fixed size, in the profile's order, behind all reads that somebody waits
//! for. A demand is served from the cache; one that is in flight is awaited; every other one is
//! read as if this did not exist. A wrong profile costs time, never a byte.
//!
//! It stands between the readers and the stream's client:
//!
//!     ahead.read(&client, tag, offset, buffer)      // in place of client.submit
//!     while (client.nextEvent()) |event| if (ahead.take(&client, &event)) continue else ...
//!     while (ahead.nextDone()) |tag| ...            // reads that ended without an event
//!     ahead.pump(&client)                           // before client.transmit

const std = @import("std");
const wire = @import("wire").stream;
const profile = wire.profile;
const StreamClient = @import("../stream/client/client.zig");
const assert = std.debug.assert;

pub const ReadAhead = @This();

/// Units in flight: ahead of demand, together with those that somebody now waits for. Most are
/// large, and `window_bytes` is less; filling a link takes this many small ones.
const reads_max = 24;
const asked_max = 48;
/// Extra slots that the client needs, one of them for the profile.
pub const client_places = asked_max + 1;
pub const slot_size = profile.unit_size;
/// A smaller cache gains nothing.
pub const cache_size_min = 1 << 20;
/// Read-ahead in flight; small, so that it delays a demand only briefly.
const window_bytes = 256 << 10;
const document_tries_max = 3;
/// Above all tags of the readers.
const tag_document = 1 << 40;
const tag_unit = 1 << 41;
const none = std.math.maxInt(u16);
const places_count = 16384;

tables: *Tables,
cache: []u8,
state: enum { off, fetching, reading, ended } = .off,
document_tries: u8 = 0,
document_asked: bool = false,
count: u16 = 0,
/// The next unit that may be read.
next: u16 = 0,
asked: u16 = 0,
slots_used: u16 = 0,
/// Slots that were returned, and the next that was never taken.
free_count: u16 = 0,
fresh: u16 = 0,
/// The highest place in the order that the system has reached.
reached: u16 = 0,
/// No unit before it is held.
oldest: u16 = 0,
waiting_count: u16 = 0,
done_count: u16 = 0,
statistics: Statistics = .{},

pub const Statistics = struct {
    /// Reads ahead of demand.
    reads: u64 = 0,
    bytes: u64 = 0,
    /// Demands answered from the cache, and those that waited for data in flight.
    hits: u64 = 0,
    waits: u64 = 0,
    /// Bytes of it that the system used, each once.
    used_bytes: u64 = 0,
    /// Demands that went to the edge.
    misses: u64 = 0,
};

/// The parts of fixed size.
pub const Tables = struct {
    document: [profile.document_size_max]u8,
    units: [profile.units_max]Planned,
    /// Slot in `units` by the unit's index, open addressing.
    places: [places_count]u16,
    free_slots: [profile.units_max]u16,
    waiting: [waiting_max]Waiting,
    done: [waiting_max]u64,
};

/// Demands of the system in progress.
pub const waiting_max = 64;

const Waiting = struct { tag: u64, offset: u64, buffer: []u8 };

const Planned = struct {
    index: u40,
    /// Blocks that the system is expected to demand and has not received.
    wanted: u8,
    /// The range to read: from the first wanted block to the last.
    first: u8,
    end: u8,
    state: enum(u8) { planned, asked, held, gone },
    /// Its bytes are outdated: dropped when they arrive.
    stale: bool,
    slot: u16,

    /// Blocks outside the wanted ones are not read.
    fn narrow(unit: *Planned) void {
        unit.first = @ctz(unit.wanted);
        unit.end = profile.unit_blocks - @as(u8, @clz(unit.wanted));
    }

    fn covers(unit: *const Planned, blocks: u8) bool {
        return blocks & ~profile.maskOf(@intCast(unit.first), @intCast(unit.end - unit.first)) == 0;
    }
};

/// State of one boot. `cache` is at least `cache_size_min` and stays the caller's.
pub fn init(tables: *Tables, cache: []u8) ReadAhead {
    assert(cache.len >= cache_size_min);
    return .{ .tables = tables, .cache = cache };
}

/// Starts when a boot's first session is open; without a profile nothing is ever read ahead.
pub fn start(ahead: *ReadAhead, client: *const StreamClient) void {
    assert(ahead.state == .off and !ahead.document_asked);
    if (client.session.?.profile_size > 0) ahead.state = .fetching;
}

/// Stops reading ahead and drops what is held.
pub fn stop(ahead: *ReadAhead, client: *StreamClient) void {
    ahead.state = .ended;
    for (ahead.tables.units[0..ahead.count]) |*unit| switch (unit.state) {
        .held => ahead.release(unit),
        .planned => unit.state = .gone,
        .asked => unit.stale = true,
        .gone => {},
    };
    ahead.settleWaiting(client);
    assert(ahead.state == .ended);
}

/// Nothing is written to the cache any more.
pub fn isIdle(ahead: *const ReadAhead) bool {
    return (ahead.state == .off or ahead.state == .ended) and ahead.asked == 0;
}

/// Like `StreamClient.submit`; its end is returned by `nextDone` or as an event. At most
/// `waiting_max` at a time.
pub fn read(
    ahead: *ReadAhead,
    client: *StreamClient,
    tag: u64,
    offset: u64,
    buffer: []u8,
) error{Full}!void {
    assert(tag < tag_document);
    // The disk is stopped, even if some of it is still in the cache.
    if (client.state == .ended) return client.submit(tag, offset, buffer);
    switch (ahead.look(offset, buffer.len)) {
        .held => {
            ahead.statistics.hits += 1;
            ahead.give(client, tag, offset, buffer);
        },
        .coming => {
            if (ahead.waiting_count == waiting_max) return error.Full;
            ahead.statistics.waits += 1;
            ahead.hasten(client, offset, buffer.len);
            assert(ahead.waiting_count < waiting_max);
            ahead.tables.waiting[ahead.waiting_count] =
                .{ .tag = tag, .offset = offset, .buffer = buffer };
            ahead.waiting_count += 1;
        },
        .planned => if (ahead.askAll(client, offset, buffer.len)) {
            return ahead.read(client, tag, offset, buffer);
        } else return ahead.readPast(client, tag, offset, buffer),
        .missing => return ahead.readPast(client, tag, offset, buffer),
    }
}

fn readPast(
    ahead: *ReadAhead,
    client: *StreamClient,
    tag: u64,
    offset: u64,
    buffer: []u8,
) error{Full}!void {
    try client.submit(tag, offset, buffer);
    ahead.statistics.misses += 1;
    ahead.forgo(offset, buffer.len, .read);
}

/// Somebody waits for units that are not requested yet, or not completely. Returns false if not all
/// could be requested. They stay reads ahead of demand: they may contain more than was demanded,
/// and USED reports what was used.
fn askAll(ahead: *ReadAhead, client: *StreamClient, offset: u64, length: usize) bool {
    var blocks: profile.UnitIterator = .init(offset, @intCast(length));
    while (blocks.next()) |wanted| {
        const unit = ahead.find(wanted.index).?;
        if (unit.state == .planned and !ahead.ask(client, unit)) return false;
    }
    return true;
}

/// Somebody waits for all of these.
fn hasten(ahead: *ReadAhead, client: *StreamClient, offset: u64, length: usize) void {
    var blocks: profile.UnitIterator = .init(offset, @intCast(length));
    while (blocks.next()) |wanted| {
        const unit = ahead.find(wanted.index).?;
        if (unit.state == .asked) client.onWaitedFor(tag_unit + @as(u64, ahead.orderOf(unit)));
    }
}

/// Returns false if there is no capacity for it now.
fn ask(ahead: *ReadAhead, client: *StreamClient, unit: *Planned) bool {
    assert(unit.state == .planned);
    if (ahead.asked == asked_max) return false;
    const begin =
        @as(u64, unit.index) * profile.unit_size + @as(u64, unit.first) * profile.block_size;
    const end = @as(u64, unit.index) * profile.unit_size + @as(u64, unit.end) * profile.block_size;
    const length = @min(end, client.session.?.disk_size) -| begin;
    if (length == 0) {
        // Beyond the end of the disk.
        unit.state = .gone;
        return true;
    }
    const slot = ahead.takeSlot() orelse return false;
    client.submitOf(
        .ahead,
        tag_unit + @as(u64, ahead.orderOf(unit)),
        begin,
        ahead.bytesOf(slot)[0..@intCast(length)],
    ) catch {
        ahead.freeSlot(slot);
        return false;
    };
    unit.state = .asked;
    unit.slot = slot;
    assert(ahead.asked < asked_max);
    ahead.asked += 1;
    ahead.statistics.reads += 1;
    ahead.statistics.bytes += length;
    return true;
}

/// The system writes or discards this range: data read ahead of it is outdated.
pub fn onWrite(ahead: *ReadAhead, offset: u64, length: u64) void {
    ahead.forgo(offset, length, .written);
}

/// Tells whether the event belonged to a read-ahead and is handled.
pub fn take(ahead: *ReadAhead, client: *StreamClient, event: *const StreamClient.Event) bool {
    switch (event.*) {
        .read_done => |done| {
            if (done.tag == tag_document) {
                ahead.plan(client);
                return true;
            }
            if (done.tag < tag_unit) return false;
            const unit = &ahead.tables.units[@intCast(done.tag - tag_unit)];
            assert(unit.state == .asked);
            ahead.asked -= 1;
            unit.state = .held;
            if (unit.stale) ahead.release(unit);
            ahead.settleWaiting(client);
            // It was read from the edge meanwhile.
            if (unit.state == .held and unit.wanted == 0) ahead.release(unit);
        },
        .read_failed => |failed| {
            if (failed.tag == tag_document) {
                ahead.state = .off;
                return true;
            }
            if (failed.tag < tag_unit) return false;
            const unit = &ahead.tables.units[@intCast(failed.tag - tag_unit)];
            assert(unit.state == .asked);
            ahead.asked -= 1;
            ahead.release(unit);
            ahead.settleWaiting(client);
        },
        else => return false,
    }
    return true;
}

/// Returns the tag of a read that has ended well without an event.
pub fn nextDone(ahead: *ReadAhead) ?u64 {
    assert(ahead.done_count <= waiting_max);
    if (ahead.done_count == 0) return null;
    ahead.done_count -= 1;
    return ahead.tables.done[ahead.done_count];
}

/// Requests the next units of the profile, as far as there is capacity.
pub fn pump(ahead: *ReadAhead, client: *StreamClient) void {
    if (client.state != .established) return;
    if (ahead.state == .fetching and !ahead.document_asked) {
        const document = ahead.tables.document[0..client.session.?.profile_size];
        client.submitOf(.profile, tag_document, 0, document) catch return;
        ahead.document_asked = true;
        ahead.document_tries += 1;
    }
    if (ahead.state != .reading) return;
    assert(ahead.next <= ahead.count);
    while (ahead.next < ahead.count and ahead.asked < reads_max and
        client.inFlightBytes() < window_bytes)
    {
        const unit = &ahead.tables.units[ahead.next];
        if (unit.state == .planned and !ahead.ask(client, unit)) return;
        ahead.next += 1;
    }
}

/// The profile has arrived.
fn plan(ahead: *ReadAhead, client: *const StreamClient) void {
    if (ahead.state != .fetching) return;
    const tables = ahead.tables;
    const units = profile.openDocument(tables.document[0..client.session.?.profile_size]) catch {
        // It may have been replaced while it was in flight.
        ahead.document_asked = false;
        if (ahead.document_tries == document_tries_max) ahead.state = .off;
        return;
    };
    tables.places = @splat(none);
    ahead.count = 0;
    for (0..units.count()) |index| {
        const unit = units.at(@intCast(index));
        const place = ahead.placeOf(unit.index);
        // Each occurs once.
        if (tables.places[place] != none) continue;
        tables.places[place] = ahead.count;
        tables.units[ahead.count] = .{
            .index = unit.index,
            .wanted = unit.blocks,
            .first = 0,
            .end = 0,
            .state = .planned,
            .stale = false,
            .slot = none,
        };
        tables.units[ahead.count].narrow();
        ahead.count += 1;
    }
    ahead.state = .reading;
    assert(ahead.count <= profile.units_max);
    assert(ahead.asked == 0);
}

/// `planned`: part of it is not requested yet, and is best read as the profile lists it: blocks in
/// the cache are not read twice, nor neighbouring blocks that the system will demand.
fn look(ahead: *ReadAhead, offset: u64, length: usize) enum { held, coming, planned, missing } {
    if (ahead.count == 0) return .missing;
    var is_coming = false;
    var is_begun = false;
    var wanted_count: u32 = 0;
    var planned_count: u32 = 0;
    var blocks: profile.UnitIterator = .init(offset, @intCast(length));
    while (blocks.next()) |wanted| {
        const unit = ahead.find(wanted.index) orelse return .missing;
        if (unit.stale or !unit.covers(wanted.blocks)) return .missing;
        switch (unit.state) {
            .held => is_begun = true,
            .asked => {
                is_begun = true;
                is_coming = true;
            },
            .planned => {
                wanted_count += @popCount(wanted.blocks);
                planned_count += unit.end - unit.first;
            },
            .gone => return .missing,
        }
    }
    // Nobody waits for much more than was demanded.
    if (planned_count > 0) return if (is_begun or
        2 * wanted_count >= planned_count) .planned else .missing;
    return if (is_coming) .coming else .held;
}

/// All of it is held.
fn give(ahead: *ReadAhead, client: *StreamClient, tag: u64, offset: u64, buffer: []u8) void {
    var blocks: profile.UnitIterator = .init(offset, @intCast(buffer.len));
    while (blocks.next()) |wanted| {
        const unit = ahead.find(wanted.index).?;
        assert(unit.state == .held);
        const held_from =
            @as(u64, unit.index) * profile.unit_size + @as(u64, unit.first) * profile.block_size;
        const begin = @max(offset, wanted.offset());
        const end = @min(offset + buffer.len, wanted.offset() + profile.unit_size);
        const bytes =
            ahead.bytesOf(unit.slot)[@intCast(begin - held_from)..@intCast(end - held_from)];
        @memcpy(buffer[@intCast(begin - offset)..][0..bytes.len], bytes);
        ahead.reached = @max(ahead.reached, ahead.orderOf(unit));
        const got = wanted.blocks & unit.wanted;
        if (got == 0) continue;
        client.used.add(.{ .index = unit.index, .blocks = got });
        ahead.statistics.used_bytes += @as(u64, @popCount(got)) * profile.block_size;
        unit.wanted &= ~got;
        if (unit.wanted == 0) ahead.release(unit);
    }
    assert(ahead.done_count < waiting_max);
    ahead.tables.done[ahead.done_count] = tag;
    ahead.done_count += 1;
}

fn settleWaiting(ahead: *ReadAhead, client: *StreamClient) void {
    assert(ahead.waiting_count <= waiting_max);
    var index: u16 = 0;
    while (index < ahead.waiting_count) {
        const waiting = ahead.tables.waiting[index];
        switch (ahead.look(waiting.offset, waiting.buffer.len)) {
            .coming => {
                index += 1;
                continue;
            },
            .held => ahead.give(client, waiting.tag, waiting.offset, waiting.buffer),
            // The unit that it waited for was dropped.
            .planned, .missing => client.submit(waiting.tag, waiting.offset, waiting.buffer) catch {
                // A slot is free as soon as another read ends, which is when this is called.
                index += 1;
                continue;
            },
        }
        ahead.waiting_count -= 1;
        std.mem.copyForwards(
            Waiting,
            ahead.tables.waiting[index..ahead.waiting_count],
            ahead.tables.waiting[index + 1 .. ahead.waiting_count + 1],
        );
    }
}

/// Drops data that nobody will read from the cache: it is read from the edge now, or is outdated.
fn forgo(ahead: *ReadAhead, offset: u64, length: u64, why: enum { read, written }) void {
    if (ahead.count == 0 or length == 0) return;
    var at = offset;
    while (at < offset + length) {
        // A discard is longer than a read: its range is split.
        const piece: u32 = @intCast(@min(offset + length - at, 64 << 20));
        var blocks: profile.UnitIterator = .init(at, piece);
        while (blocks.next()) |wanted| {
            const unit = ahead.find(wanted.index) orelse continue;
            switch (why) {
                .written => switch (unit.state) {
                    .planned => unit.state = .gone,
                    .asked => unit.stale = true,
                    .held => ahead.release(unit),
                    .gone => {},
                },
                .read => {
                    ahead.reached = @max(ahead.reached, ahead.orderOf(unit));
                    unit.wanted &= ~wanted.blocks;
                    if (unit.wanted != 0) {
                        if (unit.state == .planned) unit.narrow();
                        continue;
                    }
                    switch (unit.state) {
                        .planned => unit.state = .gone,
                        .held => ahead.release(unit),
                        .asked, .gone => {},
                    }
                },
            }
        }
        at += piece;
    }
}

fn release(ahead: *ReadAhead, unit: *Planned) void {
    assert(unit.slot != none);
    unit.state = .gone;
    ahead.freeSlot(unit.slot);
    unit.slot = none;
}

/// Returns a free slot, or that of a unit that the system has passed.
fn takeSlot(ahead: *ReadAhead) ?u16 {
    const slots = ahead.slotsCount();
    if (ahead.slots_used == slots) {
        while (ahead.oldest < ahead.next) : (ahead.oldest += 1) {
            const unit = &ahead.tables.units[ahead.oldest];
            if (unit.state == .asked) return null;
            if (unit.state == .held) break;
        }
        if (ahead.oldest == ahead.next or ahead.reached < ahead.oldest +| slots / 2) return null;
        ahead.release(&ahead.tables.units[ahead.oldest]);
    }
    // Slots that were never taken are consecutive; returned ones lie on top.
    assert(ahead.slots_used < slots);
    ahead.slots_used += 1;
    if (ahead.free_count > 0) {
        ahead.free_count -= 1;
        return ahead.tables.free_slots[ahead.free_count];
    }
    assert(ahead.fresh < slots);
    defer ahead.fresh += 1;
    return ahead.fresh;
}

fn freeSlot(ahead: *ReadAhead, slot: u16) void {
    assert(ahead.slots_used > 0);
    assert(slot < ahead.fresh);
    ahead.slots_used -= 1;
    ahead.tables.free_slots[ahead.free_count] = slot;
    ahead.free_count += 1;
}

fn slotsCount(ahead: *const ReadAhead) u16 {
    return @intCast(@min(ahead.cache.len / slot_size, profile.units_max));
}

fn bytesOf(ahead: *const ReadAhead, slot: u16) []u8 {
    return ahead.cache[@as(usize, slot) * slot_size ..][0..slot_size];
}

fn orderOf(ahead: *const ReadAhead, unit: *const Planned) u16 {
    return @intCast(unit - &ahead.tables.units[0]);
}

fn find(ahead: *ReadAhead, index: u40) ?*Planned {
    const at = ahead.tables.places[ahead.placeOf(index)];
    return if (at == none) null else &ahead.tables.units[at];
}

/// Returns where the unit is, or would be.
fn placeOf(ahead: *const ReadAhead, index: u40) usize {
    // Fibonacci hashing: consecutive units lie apart.
    var at: usize = @intCast((@as(u64, index) *% 0x9e37_79b9_7f4a_7c15) >> 50);
    while (ahead.tables.places[at] != none) : (at = (at + 1) % places_count) {
        if (ahead.tables.units[ahead.tables.places[at]].index == index) break;
    }
    return at;
}

test {
    _ = @import("read_ahead_test.zig");
}
