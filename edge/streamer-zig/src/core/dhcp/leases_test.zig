//! Tests of leases.zig.

const std = @import("std");
const testing = std.testing;
const base = @import("base");
const dhcp_network = @import("network.zig");
const DhcpLeases = @import("leases.zig");
const Client = DhcpLeases.Client;
const Ip4 = base.Ip4;
const Mac = base.Mac;
const Network = dhcp_network.Network;

const second = std.time.us_per_s;
const server_ip: Ip4 = .init(10, 0, 0, 1);
const lease_s = 60;

fn macOf(number: u48) Mac {
    return .fromInt(0x02bf00000000 + number);
}

fn device(number: u48) Client {
    return .of(macOf(number), null, .client_id);
}

/// Addresses from 10.0.0.10 on.
fn poolOf(comptime size: u8) Network {
    return .{
        .subnet = .of(server_ip, 24),
        .mode = .server,
        .link = 0,
        .pools = comptime &.{.{ .first = .init(10, 0, 0, 10), .last = .init(10, 0, 0, 9 + size) }},
    };
}

fn leasesOf(network: *const Network) !DhcpLeases {
    return .init(testing.allocator, network, &.{.{ .ip = server_ip }});
}

fn grant(leases: *DhcpLeases, now_us: u64, client: Client, ip: Ip4) !void {
    try testing.expectEqual(.granted, leases.bind(now_us, &client, ip, lease_s));
}

fn offer(leases: *DhcpLeases, now_us: u64, client: Client, wanted: ?Ip4) ?Ip4 {
    return leases.offer(now_us, &client, wanted);
}

test "a device gets the same address again, even after its lease expired" {
    const network = poolOf(8);
    var leases = try leasesOf(&network);
    defer leases.deinit(testing.allocator);
    const ip = offer(&leases, 0, device(1), null).?;
    try grant(&leases, 1, device(1), ip);
    try testing.expectEqual(ip, offer(&leases, 1000 * second, device(1), null).?);
    try testing.expectEqual(ip, offer(&leases, 1000 * second, device(1), .init(10, 0, 0, 17)).?);
}

test "a running lease goes to nobody else, an expired one does when the pool is used up" {
    const network = poolOf(2);
    var leases = try leasesOf(&network);
    defer leases.deinit(testing.allocator);
    const first = offer(&leases, 0, device(1), null).?;
    try grant(&leases, 0, device(1), first);
    const second_ip = offer(&leases, 0, device(2), first).?;
    try testing.expect(!first.eql(second_ip));
    try grant(&leases, 5, device(2), second_ip);
    try testing.expectEqual(.taken, leases.bind(6, &device(2), first, lease_s));
    try testing.expectEqual(null, offer(&leases, 6, device(3), null));
    try testing.expectEqual(first, offer(&leases, 61 * second, device(3), null).?);
    try testing.expectEqual(.taken, leases.bind(61 * second, &device(1), first, lease_s));
}

test "an offer is held for its device and then free" {
    const network = poolOf(1);
    var leases = try leasesOf(&network);
    defer leases.deinit(testing.allocator);
    const ip = offer(&leases, 0, device(1), null).?;
    try testing.expectEqual(null, offer(&leases, second, device(2), null));
    leases.dropOffer(second, &device(1));
    try testing.expectEqual(ip, offer(&leases, second, device(2), null).?);
    try testing.expectEqual(ip, offer(&leases, 60 * second, device(3), null).?);
}

test "offers that nobody takes are given up, oldest first, where no address is free" {
    const network = poolOf(3);
    var leases = try leasesOf(&network);
    defer leases.deinit(testing.allocator);
    const bound = offer(&leases, 0, device(1), null).?;
    try grant(&leases, 0, device(1), bound);
    const first = offer(&leases, 0, device(2), null).?;
    const later = offer(&leases, second, device(3), null).?;
    try testing.expectEqual(null, offer(&leases, 2 * second - 1, device(4), null));
    try testing.expectEqual(first, offer(&leases, 2 * second, device(4), null).?);
    try testing.expectEqual(.taken, leases.bind(2 * second, &device(2), first, lease_s));
    try testing.expectEqual(later, offer(&leases, 3 * second, device(5), null).?);
    try grant(&leases, 3 * second, device(4), first);
    try testing.expectEqual(null, offer(&leases, 4 * second, device(6), null));
}

test "a declined address is avoided, and a released one is free for its owner and others" {
    const network = poolOf(1);
    var leases = try leasesOf(&network);
    defer leases.deinit(testing.allocator);
    const ip = offer(&leases, 0, device(1), null).?;
    try testing.expect(!leases.decline(0, &device(2), ip));
    try testing.expect(leases.decline(0, &device(1), ip));
    try testing.expectEqual(null, offer(&leases, 599 * second, device(1), null));
    try testing.expectEqual(.taken, leases.bind(599 * second, &device(1), ip, lease_s));
    try testing.expectEqual(ip, offer(&leases, 600 * second, device(2), null).?);
    try grant(&leases, 600 * second, device(2), ip);
    try testing.expect(!leases.release(600 * second, &device(1), ip));
    try testing.expect(leases.release(600 * second, &device(2), ip));
    try testing.expectEqual(ip, offer(&leases, 600 * second, device(3), null).?);
}

test "an address that another machine answers for while it is offered is avoided, a lease stays" {
    const network = poolOf(2);
    var leases = try leasesOf(&network);
    defer leases.deinit(testing.allocator);
    const ip = offer(&leases, 0, device(1), null).?;
    try testing.expect(leases.isOffered(0, ip));
    // The client itself may have it still, and who answers for others changes nothing.
    try testing.expect(!leases.findInUse(0, ip, macOf(1)));
    try testing.expect(!leases.findInUse(0, .init(10, 0, 0, 99), macOf(7)));
    try testing.expect(leases.findInUse(0, ip, macOf(7)));
    try testing.expectEqual(.taken, leases.bind(0, &device(1), ip, lease_s));
    try testing.expectEqual(.declined, leases.takeChange(0).?.state);
    const other = offer(&leases, 1, device(1), ip).?;
    try testing.expect(!other.eql(ip));
    try grant(&leases, 1, device(1), other);
    try testing.expect(!leases.isOffered(1, other));
    try testing.expect(!leases.findInUse(2, other, macOf(7)));
    try testing.expectEqual(null, offer(&leases, 30 * second, device(2), null));
    try testing.expectEqual(ip, offer(&leases, 600 * second, device(2), null).?);
}

test "the server's own address is never assigned" {
    var network = poolOf(1);
    network.pools = &.{.{ .first = server_ip, .last = server_ip }};
    var leases = try leasesOf(&network);
    defer leases.deinit(testing.allocator);
    try testing.expectEqual(null, offer(&leases, 0, device(1), server_ip));
    try testing.expectEqual(.taken, leases.bind(0, &device(1), server_ip, lease_s));
}

test "several pools are one, and no address between them is assigned" {
    var network = poolOf(1);
    network.pools = &.{
        .{ .first = .init(10, 0, 0, 30), .last = .init(10, 0, 0, 31) },
        .{ .first = .init(10, 0, 0, 10), .last = .init(10, 0, 0, 10) },
    };
    var leases = try leasesOf(&network);
    defer leases.deinit(testing.allocator);
    try testing.expectEqual(.unknown, leases.bind(0, &device(1), .init(10, 0, 0, 20), lease_s));
    for (0..3) |number| {
        const ip = offer(&leases, 0, device(@intCast(number + 1)), .init(10, 0, 0, 20)).?;
        try grant(&leases, 0, device(@intCast(number + 1)), ip);
    }
    try testing.expectEqual(null, offer(&leases, 0, device(9), null));
}

test "a client is known by its identifier, and by its MAC if the identifier is only that" {
    const network = poolOf(8);
    var leases = try leasesOf(&network);
    defer leases.deinit(testing.allocator);
    const firmware = device(1);
    const by_mac: Client = .of(macOf(1), &.{ 1, 0x02, 0xbf, 0, 0, 0, 1 }, .client_id);
    const system: Client = .of(macOf(1), &.{ 255, 1, 2, 3, 4 }, .client_id);
    const moved: Client = .of(macOf(2), &.{ 255, 1, 2, 3, 4 }, .client_id);
    const long: Client = .of(macOf(1), &(.{7} ++ @as([99]u8, @splat(1))), .client_id);
    const other_long: Client = .of(macOf(1), &(.{7} ++ @as([98]u8, @splat(1)) ++ .{2}), .client_id);
    try testing.expect(firmware.eql(&by_mac));
    try testing.expect(!firmware.eql(&system));
    try testing.expect(system.eql(&moved));
    try testing.expect(!long.eql(&other_long));
    const ip = offer(&leases, 0, firmware, null).?;
    try grant(&leases, 0, firmware, ip);
    try testing.expectEqual(ip, offer(&leases, 0, by_mac, null).?);
    const other = offer(&leases, 0, system, null).?;
    try testing.expect(!other.eql(ip));
    try grant(&leases, 0, system, other);
    try testing.expectEqual(other, offer(&leases, 0, moved, null).?);
}

test "by MAC alone a machine keeps its address from its firmware to its system" {
    var network = poolOf(8);
    network.identify_by = .mac;
    var leases = try leasesOf(&network);
    defer leases.deinit(testing.allocator);
    const firmware: Client = .of(macOf(1), null, .mac);
    const system: Client = .of(macOf(1), &.{ 255, 1, 2, 3, 4 }, .mac);
    const ip = offer(&leases, 0, firmware, null).?;
    try grant(&leases, 0, firmware, ip);
    try testing.expectEqual(ip, offer(&leases, 0, system, null).?);
}

test "a reserved address is its client's alone, by MAC or identifier, inside and outside the pool" {
    var network = poolOf(3);
    const inside: Ip4 = .init(10, 0, 0, 11);
    const outside: Ip4 = .init(10, 0, 0, 200);
    network.reservations = &.{
        .{ .ip = inside, .mac = macOf(1), .host_name = "till" },
        .{ .ip = outside, .client_id = &.{ 0, 'k', 'e', 'y' } },
    };
    var leases = try leasesOf(&network);
    defer leases.deinit(testing.allocator);
    const keyed: Client = .of(macOf(2), "\x00key", .client_id);
    try testing.expectEqual(inside, offer(&leases, 0, device(1), .init(10, 0, 0, 12)).?);
    try testing.expectEqual(outside, offer(&leases, 0, keyed, null).?);
    try testing.expectEqual(.taken, leases.bind(0, &device(3), inside, lease_s));
    try testing.expectEqual(.taken, leases.bind(0, &device(3), outside, lease_s));
    try testing.expectEqualStrings("till", leases.hostNameOf(&device(1)).?);
    // Two addresses are left for other clients.
    try testing.expect(offer(&leases, 0, device(3), inside) != null);
    try testing.expect(offer(&leases, 0, device(4), null) != null);
    try testing.expectEqual(null, offer(&leases, 0, device(5), null));
    // A client with a reservation gets no other address, until its own is found in use.
    try testing.expectEqual(
        .taken,
        leases.bind(31 * second, &device(1), .init(10, 0, 0, 12), lease_s),
    );
    try grant(&leases, 31 * second, device(1), inside);
    try testing.expect(leases.decline(31 * second, &device(1), inside));
    const other = offer(&leases, 31 * second, device(1), null).?;
    try testing.expect(!other.eql(inside));
    try grant(&leases, 31 * second, device(1), other);
    try testing.expectEqual(inside, offer(&leases, 700 * second, device(1), null).?);
}

test "dumped leases are restored, and those of another pool are left out" {
    const network = poolOf(8);
    var leases = try leasesOf(&network);
    defer leases.deinit(testing.allocator);
    const ip = offer(&leases, 0, device(1), null).?;
    try grant(&leases, 0, device(1), ip);
    const old = offer(&leases, 0, device(2), null).?;
    try grant(&leases, 0, device(2), old);
    try testing.expect(leases.release(1, &device(2), old));
    const bad = offer(&leases, 0, device(3), null).?;
    try testing.expect(leases.decline(1, &device(3), bad));
    try testing.expectEqual(4, leases.change_count);

    var restored = try leasesOf(&network);
    defer restored.deinit(testing.allocator);
    var records = leases.dump(10 * second);
    while (records.next()) |record| try testing.expect(restored.restore(500 * second, &record));
    try testing.expectEqual(macOf(1), restored.macOf(549 * second, ip).?);
    try testing.expectEqual(null, restored.macOf(550 * second, ip));
    try testing.expectEqual(null, restored.macOf(500 * second, old));
    try testing.expectEqual(old, offer(&restored, 500 * second, device(2), null).?);
    try testing.expectEqual(.taken, restored.bind(500 * second, &device(3), bad, lease_s));
    const foreign: DhcpLeases.Record =
        .{ .ip = .init(10, 9, 9, 9), .client = device(3), .state = .bound, .remaining_us = 1 };
    try testing.expect(!restored.restore(0, &foreign));
}

test "each change is returned once, with the state at the time of the call" {
    const network = poolOf(4);
    var leases = try leasesOf(&network);
    defer leases.deinit(testing.allocator);
    const first = offer(&leases, 0, device(1), null).?;
    try testing.expectEqual(null, leases.takeChange(0));
    try grant(&leases, 0, device(1), first);
    try grant(&leases, 0, device(1), .init(10, 0, 0, 12));
    var seen: u32 = 0;
    while (leases.takeChange(0)) |record| : (seen += 1) {
        const is_first = record.ip.eql(first);
        try testing.expectEqual(is_first, record.client.isUnknown());
        try testing.expectEqual(is_first, record.state == .remembered);
    }
    try testing.expectEqual(2, seen);
}
