//! Which versions this edge and the others of its site hold whole (packages/proto/PEERS.md,
//! "Holdings"). An edge tells the others what it has found out about each version of its state; of
//! a version that it has not tried to open yet it tells nothing. Fixed tables, allocated once.
//! Pure.

const std = @import("std");
const base = @import("base");
const peer = @import("wire").peer;
const SiteEdges = @import("edges.zig");
const assert = std.debug.assert;
const Uuid = base.Uuid;

pub const Holdings = @This();

pub const Holding = enum {
    held,
    /// The edge has not told, or belongs to a release that tells nothing.
    unknown,
    damaged,
    lacking,
};

/// Versions of an edge of which something is known: as many as a desired state may have.
pub const versions_max = 1024;
const lists_max = SiteEdges.edges_max + 1;

own: List,
/// Same indexes as the site's edges.
others: [lists_max]List,
/// Where this edge serves boot scripts.
own_http_port: u16 = 0,
/// When the next page of the own list is due; `never` before there is one.
due_us: u64 = never,
/// The next page begins here.
page_index: u32 = 0,
page_first: Uuid = .zero,
/// How often the whole list was sent since it changed.
sends: u8 = 0,

const never = std.math.maxInt(u64);
/// The next of these rounds makes up for lost messages.
const pauses_us = [_]u64{ 100 * std.time.us_per_ms, std.time.us_per_s };
pub const refresh_us = 10 * std.time.us_per_s;
const last_id: Uuid = .fromBytes(@splat(0xff));

const List = struct {
    entries: []peer.Holding,
    count: u32 = 0,
    http_port: u16 = 0,
    /// Counter of the latest message: an earlier one may arrive later.
    counter: u64 = 0,
    has_told: bool = false,

    fn find(list: *const List, version: Uuid) Holding {
        const at = list.lowerBound(version);
        if (at == list.count or !list.entries[at].version.eql(version)) return .unknown;
        return switch (list.entries[at].copy) {
            .held => .held,
            .damaged => .damaged,
            .lacking => .lacking,
        };
    }

    /// Returns the place of the first version that does not come before this one.
    fn lowerBound(list: *const List, version: Uuid) u32 {
        return @intCast(std.sort.lowerBound(
            peer.Holding,
            list.entries[0..list.count],
            version,
            orderOf,
        ));
    }

    /// Replaces everything from `first` to `last`. What does not fit is not known.
    fn replace(list: *List, page: *const peer.Holdings) void {
        const from = list.lowerBound(page.first);
        var to = list.lowerBound(page.last);
        if (to < list.count and list.entries[to].version.eql(page.last)) to += 1;
        assert(from <= to);
        const rest = list.count - to;
        const added: u32 = @min(page.list.count, list.entries.len - from - rest);
        const kept = list.entries[to..list.count];
        const target = list.entries[from + added ..][0..rest];
        if (added <= to - from)
            std.mem.copyForwards(peer.Holding, target, kept)
        else
            std.mem.copyBackwards(peer.Holding, target, kept);
        @memcpy(list.entries[from..][0..added], page.list.buffer[0..added]);
        list.count = from + added + rest;
    }

    fn clear(list: *List) void {
        list.* = .{ .entries = list.entries };
    }
};

fn orderOf(wanted: Uuid, entry: peer.Holding) std.math.Order {
    return std.mem.order(u8, &wanted.bytes, &entry.version.bytes);
}

pub fn init(gpa: std.mem.Allocator) error{OutOfMemory}!Holdings {
    const all = try base.allocUntouched(gpa, peer.Holding, (lists_max + 1) * versions_max);
    var holdings: Holdings = .{ .own = .{ .entries = all[0..versions_max] }, .others = undefined };
    for (&holdings.others, 1..) |*list, number|
        list.* = .{ .entries = all[number * versions_max ..][0..versions_max] };
    return holdings;
}

pub fn deinit(holdings: *Holdings, gpa: std.mem.Allocator) void {
    var first = holdings.own.entries.ptr;
    // The lists of the others change their places.
    for (&holdings.others) |*list|
        if (@intFromPtr(list.entries.ptr) < @intFromPtr(first)) {
            first = list.entries.ptr;
        };
    base.freeUntouched(gpa, peer.Holding, first[0 .. (lists_max + 1) * versions_max]);
    holdings.* = undefined;
}

pub fn ownOf(holdings: *const Holdings, version: Uuid) Holding {
    return holdings.own.find(version);
}

pub fn of(holdings: *const Holdings, edge: u8, version: Uuid) Holding {
    return holdings.others[edge].find(version);
}

/// Returns whether this edge tells what it holds.
pub fn tells(holdings: *const Holdings, edge: u8) bool {
    return holdings.others[edge].has_told;
}

/// Returns where an edge serves boot scripts; 0: unknown.
pub fn httpPortOf(holdings: *const Holdings, edge: u8) u16 {
    return holdings.others[edge].http_port;
}

/// Takes what is known of this edge's versions, in ascending order of their ids. What does not fit
/// is not known.
pub fn set(holdings: *Holdings, now_us: u64, known: []const peer.Holding) void {
    const count: u32 = @intCast(@min(known.len, versions_max));
    const own = &holdings.own;
    if (own.has_told and isSame(own.entries[0..own.count], known[0..count])) return;
    for (known[0..count], 0..) |*entry, index|
        assert(index == 0 or peer.isBefore(known[index - 1].version, entry.version));
    @memcpy(own.entries[0..count], known[0..count]);
    own.count = count;
    own.has_told = true;
    holdings.announce(now_us);
}

fn isSame(a: []const peer.Holding, b: []const peer.Holding) bool {
    if (a.len != b.len) return false;
    for (a, b) |*one, *other|
        if (one.copy != other.copy or !one.version.eql(other.version)) return false;
    return true;
}

/// Some edge does not know this edge's list.
pub fn announce(holdings: *Holdings, now_us: u64) void {
    if (!holdings.own.has_told) return;
    holdings.sends = 0;
    holdings.page_index = 0;
    holdings.page_first = .zero;
    holdings.due_us = now_us;
}

/// Returns the next page to send; null: none is due.
pub fn takeDue(holdings: *Holdings, now_us: u64) ?peer.Holdings {
    if (now_us < holdings.due_us) return null;
    const own = &holdings.own;
    assert(own.has_told and holdings.page_index <= own.count);
    const end = @min(own.count, holdings.page_index + peer.holdings_max);
    const is_last = end == own.count;
    var page: peer.Holdings = .{
        .first = holdings.page_first,
        .last = if (is_last) last_id else own.entries[end - 1].version,
        .http_port = holdings.own_http_port,
    };
    for (own.entries[holdings.page_index..end]) |entry| page.list.appendAssumeCapacity(entry);
    if (is_last) {
        const pause_us =
            if (holdings.sends < pauses_us.len) pauses_us[holdings.sends] else refresh_us;
        holdings.sends +|= 1;
        holdings.due_us = now_us + pause_us;
        holdings.page_index = 0;
        holdings.page_first = .zero;
    } else {
        holdings.page_index = end;
        holdings.page_first = after(page.last);
    }
    return page;
}

fn after(id: Uuid) Uuid {
    var bytes: [16]u8 = undefined;
    std.mem.writeInt(u128, &bytes, std.mem.readInt(u128, &id.bytes, .big) + 1, .big);
    return .fromBytes(bytes);
}

/// Takes a page of another edge.
pub fn hear(holdings: *Holdings, edge: u8, counter: u64, page: *const peer.Holdings) void {
    const list = &holdings.others[edge];
    if (counter < list.counter) return;
    list.counter = counter;
    list.http_port = page.http_port;
    list.has_told = true;
    list.replace(page);
    assert(list.count <= versions_max);
}

/// An edge has started again: it tells everything anew.
pub fn forget(holdings: *Holdings, edge: u8) void {
    holdings.others[edge].clear();
}

/// The site's edges have other indexes from now on; `former[n]`: the earlier index of edge n.
pub fn rearrange(holdings: *Holdings, former: *const [lists_max]?u8) void {
    const old = holdings.others;
    var is_taken: [lists_max]bool = @splat(false);
    for (former, &holdings.others) |from, *list| if (from) |index| {
        assert(!is_taken[index]);
        list.* = old[index];
        is_taken[index] = true;
    };
    var next: usize = 0;
    for (former, &holdings.others) |from, *list| {
        if (from != null) continue;
        while (is_taken[next]) next += 1;
        list.* = .{ .entries = old[next].entries };
        next += 1;
    }
}

const testing = std.testing;

fn testVersion(number: u16) Uuid {
    var bytes: [16]u8 = @splat(0);
    std.mem.writeInt(u16, bytes[0..2], number, .big);
    return .fromBytes(bytes);
}

fn testList(buffer: []peer.Holding, step: u16, copy: peer.Copy) []peer.Holding {
    for (buffer, 1..) |*entry, number|
        entry.* = .{ .version = testVersion(@intCast(number * step)), .copy = copy };
    return buffer;
}

/// Sends all pages that are due from one to the other.
fn tell(from: *Holdings, to: *Holdings, edge: u8, now_us: u64, counter: *u64) u32 {
    var pages: u32 = 0;
    while (from.takeDue(now_us)) |page| : (pages += 1) {
        counter.* += 1;
        to.hear(edge, counter.*, &page);
    }
    return pages;
}

test "what an edge holds reaches the others page by page, and replaces what they knew" {
    var here: Holdings = try .init(testing.allocator);
    defer here.deinit(testing.allocator);
    var there: Holdings = try .init(testing.allocator);
    defer there.deinit(testing.allocator);
    var counter: u64 = 0;
    var buffer: [versions_max]peer.Holding = undefined;
    try testing.expectEqual(null, here.takeDue(never - 1));
    here.own_http_port = 6980;
    here.set(0, testList(&buffer, 2, .held));
    try testing.expectEqual(54, tell(&here, &there, 3, 0, &counter));
    try testing.expect(there.tells(3) and !there.tells(2));
    try testing.expectEqual(6980, there.httpPortOf(3));
    for ([_]u16{ 2, 40, 42, 2048 }) |number| {
        try testing.expectEqual(.held, there.of(3, testVersion(number)));
        try testing.expectEqual(.unknown, there.of(3, testVersion(number - 1)));
        try testing.expectEqual(.unknown, there.of(2, testVersion(number)));
    }
    // Fewer versions, and others.
    here.set(1, testList(buffer[0..30], 3, .lacking));
    try testing.expectEqual(2, tell(&here, &there, 3, 1, &counter));
    try testing.expectEqual(30, there.others[3].count);
    try testing.expectEqual(.lacking, there.of(3, testVersion(90)));
    try testing.expectEqual(.unknown, there.of(3, testVersion(2)));
    here.set(2, testList(buffer[0..500], 1, .held));
    _ = tell(&here, &there, 3, 2, &counter);
    try testing.expectEqual(500, there.others[3].count);
    here.set(3, &.{});
    try testing.expectEqual(1, tell(&here, &there, 3, 3, &counter));
    try testing.expectEqual(0, there.others[3].count);
}

test "a list is sent three times and then every ten seconds, and again when it changes" {
    var here: Holdings = try .init(testing.allocator);
    defer here.deinit(testing.allocator);
    var buffer: [1]peer.Holding = undefined;
    here.set(100_000, testList(&buffer, 1, .held));
    var sent_us: [4]u64 = undefined;
    for (&sent_us) |*at_us| {
        at_us.* = here.due_us;
        try testing.expectEqual(null, here.takeDue(here.due_us -| 1));
        try testing.expect(here.takeDue(here.due_us) != null);
    }
    try testing.expectEqualSlices(u64, &.{ 100_000, 200_000, 1_200_000, 11_200_000 }, &sent_us);
    here.set(12_000_000, testList(&buffer, 1, .held));
    try testing.expectEqual(21_200_000, here.due_us);
    here.set(12_000_000, testList(&buffer, 1, .damaged));
    try testing.expectEqual(12_000_000, here.due_us);
}

test "an earlier message changes nothing, and a list follows its edge to another index" {
    var there: Holdings = try .init(testing.allocator);
    defer there.deinit(testing.allocator);
    var page: peer.Holdings = .{ .first = .zero, .last = last_id, .http_port = 80 };
    page.list.appendAssumeCapacity(.{ .version = testVersion(1), .copy = .held });
    there.hear(0, 5, &page);
    page.list.buffer[0].copy = .lacking;
    there.hear(0, 4, &page);
    try testing.expectEqual(.held, there.of(0, testVersion(1)));
    var former: [lists_max]?u8 = @splat(null);
    former[2] = 0;
    there.rearrange(&former);
    try testing.expectEqual(.held, there.of(2, testVersion(1)));
    try testing.expectEqual(.unknown, there.of(0, testVersion(1)));
    for (&there.others, 0..) |*list, index| for (there.others[0..index]) |*other|
        try testing.expect(list.entries.ptr != other.entries.ptr);
    there.forget(2);
    try testing.expectEqual(.unknown, there.of(2, testVersion(1)));
    try testing.expect(!there.tells(2));
}
