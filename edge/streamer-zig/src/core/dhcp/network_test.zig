//! Tests of network.zig in the answers of `service.zig`: relay agents, several networks, options
//! and sizes.

const std = @import("std");
const testing = std.testing;
const base = @import("base");
const dhcp = @import("wire").dhcp;
const DhcpService = @import("service.zig");
const service_test = @import("service_test.zig");
const ServiceFixture = service_test.ServiceFixture;
const Endpoint = base.Endpoint;
const Ip4 = base.Ip4;
const Network = DhcpService.Network;
const discover = service_test.discover;
const plain = service_test.plain;
const server_ip = service_test.server_ip;
const other_server_ip = service_test.other_server_ip;
const from_nowhere = service_test.from_nowhere;

const relay_ip: Ip4 = .init(10, 79, 0, 1);
const relay_options = [_]u8{ 1, 4, 'n', 'e', 't', '3', 2, 2, 0xab, 0xcd };
const from_relay: DhcpService.Arrival =
    .{ .source = .{ .ip = relay_ip, .port = 67 }, .port = .dhcp, .link = 1 };

fn networkOf(comptime text: []const u8, mode: DhcpService.Mode, link: ?u8) Network {
    return .{ .subnet = base.Ip4Prefix.parse(text) catch unreachable, .mode = mode, .link = link };
}

/// Two networks of this edge, and one behind relay agents.
fn three(mode: DhcpService.Mode) [3]Network {
    var networks = [_]Network{
        networkOf("10.77.0.0/24", mode, 0),
        networkOf("10.78.0.0/24", mode, 1),
        networkOf("10.79.0.0/24", mode, null),
    };
    networks[0].pools =
        comptime &.{.{ .first = .init(10, 77, 0, 10), .last = .init(10, 77, 0, 19) }};
    networks[1].pools =
        comptime &.{.{ .first = .init(10, 78, 0, 10), .last = .init(10, 78, 0, 19) }};
    networks[2].pools =
        comptime &.{.{ .first = .init(10, 79, 0, 10), .last = .init(10, 79, 0, 19) }};
    networks[2].routers = comptime &.{relay_ip};
    return networks;
}

fn relayed(packet: dhcp.Packet) dhcp.Packet {
    var through = packet;
    through.giaddr = relay_ip;
    through.hops = 1;
    through.options.relay_agent = &relay_options;
    return through;
}

/// The options of a packet as sent, without its padding.
fn lastOption(payload: []const u8) []const u8 {
    var at: usize = dhcp.header_size;
    var last: []const u8 = &.{};
    while (payload[at] != 255) {
        const size = payload[at + 1];
        last = payload[at .. at + 2 + size];
        at += 2 + @as(usize, size);
    }
    return last;
}

test "a relay agent gets the answer at its port 67, with its own option last and unaltered" {
    const networks = three(.server);
    var fixture: ServiceFixture = try .of(&networks);
    defer fixture.deinit();
    const offer = try fixture.reply(from_relay, relayed(plain(.discover)));
    try testing.expectEqual(Endpoint{ .ip = relay_ip, .port = 67 }, offer.reply.destination);
    try testing.expectEqual(relay_ip, offer.packet.giaddr);
    try testing.expectEqual(0, offer.packet.hops);
    try testing.expect(networks[2].subnet.contains(offer.packet.yiaddr));
    try testing.expectEqual(relay_ip, offer.packet.options.routers[0]);
    try testing.expectEqual(other_server_ip, offer.packet.options.server_identifier.?);
    try testing.expectEqualSlices(
        u8,
        &.{ 82, relay_options.len },
        lastOption(offer.reply.payload)[0..2],
    );
    try testing.expectEqualSlices(u8, &relay_options, lastOption(offer.reply.payload)[2..]);
    // A client that names another link's address still means this server.
    var request = relayed(plain(.request));
    request.options.requested_ip = offer.packet.yiaddr;
    request.options.server_identifier = server_ip;
    try testing.expectEqual(.ack, (try fixture.reply(from_relay, request)).reply.message_type);
    // A NAK goes to all clients behind the relay agent: the client has no right to its address.
    request.options.server_identifier = null;
    request.options.requested_ip = .init(10, 99, 0, 1);
    const nak = try fixture.reply(from_relay, request);
    try testing.expectEqual(.nak, nak.reply.message_type);
    try testing.expect(nak.packet.broadcast);
    try testing.expectEqual(relay_ip, nak.reply.destination.ip);
}

test "beside the network's server a relayed network boot gets its program, by broadcast" {
    const networks = three(.proxy);
    var fixture: ServiceFixture = try .of(&networks);
    defer fixture.deinit();
    const offer = try fixture.reply(from_relay, relayed(discover()));
    try testing.expectEqual(Endpoint{ .ip = relay_ip, .port = 67 }, offer.reply.destination);
    try testing.expect(offer.packet.yiaddr.isZero());
    try testing.expect(offer.packet.broadcast);
    try testing.expectEqual(other_server_ip, offer.packet.siaddr);
    try testing.expectEqualStrings(
        "b/" ++ service_test.handle_text ++ "/undionly.kpxe",
        offer.packet.file,
    );
    try testing.expectEqualSlices(u8, &relay_options, offer.packet.options.relay_agent.?);
    // A unicast request to port 4011 is not relayed.
    try testing.expectEqual(
        DhcpService.Step{ .ignored = .dhcp_relayed },
        try fixture.ask(.{ .source = from_relay.source, .port = .pxe }, relayed(discover())),
    );
}

test "a relay agent that is not configured gets no answer" {
    const networks = three(.server);
    var fixture: ServiceFixture = try .of(&networks);
    defer fixture.deinit();
    var packet = relayed(plain(.discover));
    packet.giaddr = .init(192, 0, 2, 1);
    try fixture.expectIgnored(.dhcp_relayed, packet);
    packet.giaddr = relay_ip;
    packet.hops = 17;
    try fixture.expectIgnored(.dhcp_too_many_hops, packet);
    const long: [256]u8 = @splat(0);
    packet.hops = 16;
    packet.options.relay_agent = &long;
    try fixture.expectIgnored(.dhcp_bad_option, packet);
}

test "on each interface the answer carries the edge's address there" {
    const networks = three(.proxy);
    var fixture: ServiceFixture = try .of(&networks);
    defer fixture.deinit();
    var by_http = discover();
    by_http.options.user_class = "iPXE";
    for ([_]Ip4{ server_ip, other_server_ip }, 0..) |own, link| {
        const arrival: DhcpService.Arrival =
            .{ .source = from_nowhere.source, .port = .dhcp, .link = @intCast(link) };
        const offer = try fixture.reply(arrival, by_http);
        try testing.expectEqual(own, offer.packet.siaddr);
        try testing.expectEqual(own, offer.packet.options.server_identifier.?);
        try testing.expectEqual(own, offer.reply.server_ip);
        var buffer: [64]u8 = undefined;
        const url = try std.mem.print(&buffer, "http://{f}:6980/b/", .{own});
        try testing.expect(std.mem.startsWith(u8, offer.packet.file, url));
    }
}

test "one network may have a server's mode, another a proxy's, and a third none" {
    var networks = three(.server);
    networks[1].mode = .proxy;
    networks[2].mode = .off;
    var fixture: ServiceFixture = try .of(&networks);
    defer fixture.deinit();
    try testing.expect(!(try fixture.reply(from_nowhere, discover())).packet.yiaddr.isZero());
    const second: DhcpService.Arrival =
        .{ .source = from_nowhere.source, .port = .dhcp, .link = 1 };
    try testing.expect((try fixture.reply(second, discover())).packet.yiaddr.isZero());
    try fixture.expectIgnored(.dhcp_off, relayed(discover()));
}

test "a requested lease time is granted within limits, with times to renew and rebind" {
    var networks = three(.server);
    networks[0].lease_time_s = 3600;
    networks[0].lease_time_min_s = 600;
    networks[0].lease_time_max_s = 7200;
    networks[0].renewal_time_s = 100;
    var fixture: ServiceFixture = try .of(&networks);
    defer fixture.deinit();
    const cases = [_][4]?u32{
        .{ null, 3600, 100, 3150 },  .{ 1, 600, 300, 525 },
        .{ 4000, 4000, 2000, 3500 }, .{ std.math.maxInt(u32), 7200, 3600, 6300 },
    };
    for (cases) |case| {
        var packet = plain(.discover);
        packet.options.lease_time_s = case[0];
        const options = (try fixture.reply(from_nowhere, packet)).packet.options;
        try testing.expectEqual(case[1], options.lease_time_s);
        try testing.expectEqual(case[2], options.renewal_time_s);
        try testing.expectEqual(case[3], options.rebinding_time_s);
    }
}

test "a client gets the parameters that it requests, and the identifier that it sent" {
    var networks = three(.server);
    networks[0].domain_name = "example.org";
    networks[0].dns_servers = comptime &.{.init(10, 77, 0, 3)};
    networks[0].mtu = 9000;
    var fixture: ServiceFixture = try .of(&networks);
    defer fixture.deinit();
    var packet = plain(.discover);
    packet.options.client_identifier = "\x00name";
    const all = (try fixture.reply(from_nowhere, packet)).packet.options;
    try testing.expectEqualStrings("example.org", all.domain_name.?);
    try testing.expectEqual(9000, all.interface_mtu.?);
    try testing.expectEqualStrings("\x00name", all.client_identifier.?);
    packet.options.parameter_request_list = &.{ 1, 6 };
    const some = (try fixture.reply(from_nowhere, packet)).packet.options;
    try testing.expectEqual(1, some.dns_servers.len);
    try testing.expectEqual(null, some.domain_name);
    try testing.expectEqual(null, some.interface_mtu);
    try testing.expect(some.lease_time_s != null);
}

test "firmware and loaders are told no MTU above Ethernet's" {
    for ([_]u16{ 9000, 1501, 1500, 1400 }) |mtu| {
        var networks = three(.server);
        networks[0].mtu = mtu;
        var fixture: ServiceFixture = try .of(&networks);
        defer fixture.deinit();
        const system = (try fixture.reply(from_nowhere, plain(.discover))).packet.options;
        try testing.expectEqual(mtu, system.interface_mtu.?);
        var firmware = plain(.discover);
        firmware.options.vendor_class = "PXEClient:Arch:00000:UNDI:002001";
        const told = (try fixture.reply(from_nowhere, firmware)).packet.options;
        try testing.expectEqual(if (mtu > 1500) null else mtu, told.interface_mtu);
    }
}

test "an answer fits the size that its client accepts, and keeps the options that matter" {
    const domain: [128]u8 = @splat('d');
    const many: [8]Ip4 = @splat(.init(10, 77, 0, 3));
    const long_id: [255]u8 = @splat(7);
    const long_relay: [255]u8 = @splat(0);
    var networks = three(.server);
    for (&networks) |*network| {
        network.domain_name = &domain;
        network.dns_servers = &many;
        network.ntp_servers = &many;
        network.routers = &many;
    }
    var fixture: ServiceFixture = try .of(&networks);
    defer fixture.deinit();
    for ([_]?u16{ null, 0, 576, 1472, 65280 }) |size| {
        var packet = relayed(discover());
        packet.options.max_message_size = size;
        packet.options.client_identifier = &long_id;
        packet.options.relay_agent = &long_relay;
        const offer = try fixture.reply(from_relay, packet);
        const options = &offer.packet.options;
        const limit: usize = if (size) |bytes| std.math.clamp(bytes, 576, 1500) - 28 else 548;
        try testing.expect(offer.reply.payload.len <= limit);
        try testing.expect(offer.reply.names_boot_file);
        try testing.expect(offer.packet.file.len > 0);
        try testing.expectEqual(3600, options.lease_time_s.?);
        try testing.expectEqualStrings("PXEClient", options.vendor_class.?);
        try testing.expectEqualSlices(u8, &.{ 6, 1, 8, 255 }, options.vendor_specific.?);
        try testing.expect(options.client_machine_id != null);
        try testing.expectEqualSlices(u8, &long_relay, options.relay_agent.?);
        try testing.expectEqual(limit > 600, options.client_identifier != null);
        try testing.expectEqual(limit > 600, options.ntp_servers.len == 8);
    }
}

test "a server beside another one does not answer for addresses that it does not know" {
    var networks = three(.server);
    networks[0].authoritative = false;
    var fixture: ServiceFixture = try .of(&networks);
    defer fixture.deinit();
    var request = plain(.request);
    // INIT-REBOOT with an unknown address of its own pool, and with one of another network.
    for ([_]Ip4{ .init(10, 77, 0, 12), .init(10, 99, 0, 1) }) |ip| {
        request.options.requested_ip = ip;
        try fixture.expectIgnored(.dhcp_bad_address, request);
    }
    // It confirms an address that it assigned: rebinding.
    const ip = (try fixture.reply(from_nowhere, plain(.discover))).packet.yiaddr;
    request.options.requested_ip = ip;
    try testing.expectEqual(.ack, (try fixture.reply(from_nowhere, request)).reply.message_type);
    request.options.requested_ip = null;
    request.ciaddr = ip;
    try testing.expectEqual(.ack, (try fixture.reply(from_nowhere, request)).reply.message_type);
}

test "a client with another network's address gets NAK, one with a lost lease keeps its own" {
    const networks = three(.server);
    var fixture: ServiceFixture = try .of(&networks);
    defer fixture.deinit();
    var request = plain(.request);
    // It was moved here and rebinds.
    request.ciaddr = .init(10, 78, 0, 12);
    const nak = try fixture.reply(from_nowhere, request);
    try testing.expectEqual(.nak, nak.reply.message_type);
    try testing.expect(nak.packet.ciaddr.isZero());
    // It renews across a router, in its own network.
    const far: DhcpService.Arrival =
        .{ .source = .{ .ip = .init(10, 79, 0, 15), .port = 68 }, .port = .dhcp };
    request.ciaddr = far.source.ip;
    const ack = try fixture.reply(far, request);
    try testing.expectEqual(.ack, ack.reply.message_type);
    try testing.expectEqual(far.source, ack.reply.destination);
    try testing.expectEqual(far.source.ip, ack.packet.yiaddr);
}
