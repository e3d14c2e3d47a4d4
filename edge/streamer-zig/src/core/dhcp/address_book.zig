//! Remembers which device has which IPv4 address, as observed by DHCP. It ties a download by a bare
//! file name to a boot (ARCHITECTURE.md, how a boot runs). Bounded: when it is full, the least
//! recently seen entry is evicted.

const std = @import("std");
const assert = std.debug.assert;
const base = @import("base");
const Ip4 = base.Ip4;
const Mac = base.Mac;

pub const AddressBook = @This();

entries: []Entry,
count: u32 = 0,

const Entry = struct { mac: Mac, ip: Ip4, seen_at_us: u64 };

pub fn init(gpa: std.mem.Allocator, entries_max: u32) error{OutOfMemory}!AddressBook {
    assert(entries_max > 0);
    return .{ .entries = try gpa.alloc(Entry, entries_max) };
}

pub fn deinit(book: *AddressBook, gpa: std.mem.Allocator) void {
    gpa.free(book.entries);
    book.* = undefined;
}

/// Records an address. A device has one address and an address one device: older entries of either
/// are dropped.
pub fn learn(book: *AddressBook, now_us: u64, mac: Mac, ip: Ip4) void {
    assert(mac.isDevice());
    assert(ip.isUnicast());
    var index: u32 = 0;
    while (index < book.count) {
        const entry = &book.entries[index];
        if (entry.mac.eql(mac) or entry.ip.eql(ip)) book.remove(index) else index += 1;
    }
    if (book.count == book.entries.len) book.remove(book.oldest());
    book.entries[book.count] = .{ .mac = mac, .ip = ip, .seen_at_us = now_us };
    book.count += 1;
}

pub fn macOf(book: *const AddressBook, ip: Ip4) ?Mac {
    for (book.entries[0..book.count]) |entry| if (entry.ip.eql(ip)) return entry.mac;
    return null;
}

fn ipOf(book: *const AddressBook, mac: Mac) ?Ip4 {
    for (book.entries[0..book.count]) |entry| if (entry.mac.eql(mac)) return entry.ip;
    return null;
}

fn oldest(book: *const AddressBook) u32 {
    assert(book.count > 0);
    var found: u32 = 0;
    for (book.entries[0..book.count], 0..) |entry, index| {
        if (entry.seen_at_us < book.entries[found].seen_at_us) found = @intCast(index);
    }
    return found;
}

fn remove(book: *AddressBook, index: u32) void {
    assert(index < book.count);
    book.count -= 1;
    book.entries[index] = book.entries[book.count];
}

const testing = std.testing;

test "a device has one address and an address one device" {
    var book: AddressBook = try .init(testing.allocator, 2);
    defer book.deinit(testing.allocator);
    const a: Mac = .fromInt(0x02bf00000001);
    const b: Mac = .fromInt(0x02bf00000002);
    book.learn(1, a, .init(10, 0, 0, 1));
    book.learn(2, a, .init(10, 0, 0, 2));
    try testing.expectEqual(null, book.macOf(.init(10, 0, 0, 1)));
    book.learn(3, b, .init(10, 0, 0, 2));
    try testing.expectEqual(b, book.macOf(.init(10, 0, 0, 2)).?);
    try testing.expectEqual(null, book.ipOf(a));
    try testing.expectEqual(1, book.count);
}

test "a full book forgets the least recently seen device" {
    var book: AddressBook = try .init(testing.allocator, 2);
    defer book.deinit(testing.allocator);
    for ([_]u64{ 7, 5, 9 }, 1..) |at_us, number| {
        const mac: Mac = .fromInt(0x020000000000 + @as(u48, @intCast(number)));
        book.learn(at_us, mac, .fromInt(@intCast(number)));
    }
    try testing.expectEqual(2, book.count);
    try testing.expectEqual(null, book.macOf(.fromInt(2)));
    try testing.expect(book.macOf(.fromInt(1)) != null);
    try testing.expect(book.macOf(.fromInt(3)) != null);
}
