//! Tests of dhcp.zig: what the packets of ports 67 and 4011 do to a boot.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").dhcp;
const dhcp = @import("dhcp.zig");
const TestIo = @import("io_test.zig");
const device_address = @import("device_address.zig");
const fixture = @import("agent_test.zig");
const testing = std.testing;
const gpa = testing.allocator;
const Site = fixture.Site;
const macOf = fixture.macOf;
const Service = core.dhcp.Service;

const edge_ip: base.Ip4 = .init(10, 77, 0, 2);

const Link = struct {
    site: *Site,
    port: dhcp.Dhcp(TestIo),
    out: [wire.packet_size_max]u8 = undefined,
    scratch: wire.Scratch = undefined,

    fn init(site: *Site, mode: Service.Mode) !Link {
        const networks: []const Service.Network = switch (mode) {
            inline else => |known| &.{comptime networkOf(known)},
        };
        return .{ .site = site, .port = .{ .boots = &site.boots, .service = try .init(gpa, .{
            .links = &.{.{ .ip = edge_ip }},
            .networks = networks,
            .http_port = 6980,
        }) } };
    }

    fn networkOf(mode: Service.Mode) Service.Network {
        return .{
            .subnet = .of(edge_ip, 24),
            .mode = mode,
            .link = 0,
            .pools = &.{.{ .first = .init(10, 77, 0, 10), .last = .init(10, 77, 0, 10) }},
        };
    }

    fn deinit(link: *Link) void {
        link.port.service.deinit(gpa);
    }

    fn send(link: *Link, packet: wire.Packet) !void {
        const now_us = link.site.io.now_us;
        link.port.receive(&.{
            .source = .{ .ip = .zero, .port = 68 },
            .port = .dhcp,
            .bytes = try wire.emit(&packet, &link.out),
            .at_us = now_us - 5,
        }, now_us);
    }

    /// Returns the only answer, and forgets it.
    fn answer(link: *Link) !wire.Packet {
        const sent = &link.site.io.sent;
        try testing.expectEqual(1, sent.count);
        sent.count = 0;
        try testing.expectEqual(0, sent.buffer[0].port.dhcp);
        return wire.parse(sent.buffer[0].bytes(), &link.scratch);
    }
};

fn discover(number: u8) wire.Packet {
    return .{
        .op = .request,
        .xid = 0x100 + @as(u32, number),
        .chaddr = macOf(number),
        .options = .{
            .message_type = .discover,
            .vendor_class = "PXEClient:Arch:00000:UNDI:002001",
            .client_arch = .bios,
        },
    };
}

test "a known device is offered its program, which its boot then remembers" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site, .proxy);
    defer link.deinit();
    try link.send(discover(1));
    const offer = try link.answer();
    try testing.expect(std.mem.endsWith(u8, offer.bootFileName().?, "/undionly.kpxe"));
    const boot = site.boot(site.boots.table.findByMac(macOf(1)).?);
    try testing.expectEqualStrings("default", boot.facts.program.?.set.slice());
    try testing.expectEqualStrings("undionly.kpxe", boot.facts.program.?.file.slice());
    // Its own offer is among those that were seen.
    try testing.expect(boot.offers.hasOurs());
    try testing.expectEqual(.dhcp_offer, boot.last_packets.from_edge.?.packet.name);
    // A DISCOVER names no edge.
    try testing.expect(!boot.is_taken);
    const traffic = &boot.record(.dhcp).?.traffic;
    try testing.expectEqual(1, traffic.packets_in);
    try testing.expectEqual(1, traffic.packets_out);
    try testing.expect(traffic.bytes_out > 0);
    try testing.expectEqual(null, boot.suspicion);
    // iPXE gets its script, and the program stays the first one.
    var ipxe = discover(1);
    ipxe.xid = 9;
    ipxe.options.user_class = "iPXE";
    try link.send(ipxe);
    const script = try link.answer();
    try testing.expect(std.mem.endsWith(u8, script.bootFileName().?, "boot.ipxe"));
    try testing.expectEqualStrings("undionly.kpxe", boot.facts.program.?.file.slice());
}

test "an unknown device, a failed boot and a superseded one get no answer, a ready one does" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site, .proxy);
    defer link.deinit();
    try link.send(discover(9));
    try testing.expectEqual(0, site.io.sent.count);
    try link.send(discover(1));
    _ = try link.answer();
    const ref = site.boots.table.findByMac(macOf(1)).?;
    const boot = site.boot(ref);
    boot.outcome = .{ .failed = .{ .phase = .dhcp, .cause = .token_refused } };
    try link.send(discover(1));
    try testing.expectEqual(0, site.io.sent.count);
    boot.outcome = .superseded;
    try link.send(discover(1));
    try testing.expectEqual(0, site.io.sent.count);
    boot.outcome = .ready;
    try link.send(discover(1));
    _ = try link.answer();
}

test "a device without a program is told nothing to load, and its boot says why" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site, .proxy);
    defer link.deinit();
    const Case = struct { set: ?[]const u8, cause: core.boot.phase.Cause, text: []const u8 };
    for ([_]Case{
        .{
            .set = null,
            .cause = .nbp_architecture_mismatch,
            .text = "default has no program for arm64 UEFI",
        },
        .{ .set = "nowhere", .cause = .nbp_not_found, .text = "this edge has no set nowhere" },
    }) |case| {
        site.devices[0].bootProgramSet = case.set;
        try site.decide();
        if (site.boots.table.findByMac(macOf(1))) |earlier| site.boots.table.remove(earlier);
        var packet = discover(1);
        packet.options.vendor_class = "PXEClient:Arch:00011:UNDI:003000";
        packet.options.client_arch = .uefi_arm64;
        try link.send(packet);
        site.io.sent.count = 0;
        const boot = site.boot(site.boots.table.findByMac(macOf(1)).?);
        try testing.expectEqual(case.cause, boot.suspicion.?.cause);
        try testing.expectEqualStrings(case.text, boot.suspicion.?.text.slice());
        try testing.expectEqual(null, boot.facts.program);
    }
}

test "iPXE in the ROM takes another program only where its device has a set of its own" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    site.devices[0].bootProgramSet = "other";
    try site.decide();
    var link: Link = try .init(site, .proxy);
    defer link.deinit();
    var packet = discover(1);
    packet.options.user_class = "iPXE";
    try link.send(packet);
    const offer = try link.answer();
    try testing.expect(std.mem.endsWith(u8, offer.bootFileName().?, "/undionly.kpxe"));
    const ref = site.boots.table.findByMac(macOf(1)).?;
    try testing.expectEqualStrings("other", site.boot(ref).facts.program.?.set.slice());
    // The program has been loaded: the iPXE that it started gets its script.
    site.boots.apply(ref, site.io.now_us, .nbp_begin);
    try link.send(packet);
    try testing.expect(std.mem.endsWith(u8, (try link.answer()).bootFileName().?, "boot.ipxe"));
}

test "a lease is kept before its answer, and an empty pool is what the boot suffers from" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site, .server);
    defer link.deinit();
    try link.send(discover(1));
    const offer = try link.answer();
    try testing.expect(offer.yiaddr.eql(.init(10, 77, 0, 10)));
    const boot = site.boot(site.boots.table.findByMac(macOf(1)).?);
    try testing.expect(boot.facts.ip.?.eql(offer.yiaddr));
    // An offer is no lease yet.
    site.boots.leases = &link.port.service;
    site.boots.trusted = &.{};
    boot.facts.is_ip_confirmed = false;
    try testing.expect(!site.boots.isAt(boot, offer.yiaddr));
    var request = discover(1);
    request.options.message_type = .request;
    request.options.requested_ip = offer.yiaddr;
    request.options.server_identifier = edge_ip;
    try link.send(request);
    try testing.expectEqual(.ack, (try link.answer()).options.message_type.?);
    try testing.expect(site.io.leases > 0);
    try testing.expect(boot.isAt(offer.yiaddr));
    try testing.expectEqual(.proven, device_address.judge(&site.boots, offer.yiaddr, macOf(1)));
    try testing.expectEqual(.unknown, device_address.judge(&site.boots, offer.yiaddr, macOf(2)));
    // It named this edge.
    try testing.expect(boot.is_taken);
    site.state.unknownDevices = .boot;
    try site.decide();
    try link.send(discover(11));
    try testing.expectEqual(0, site.io.sent.count);
    const other = site.boot(site.boots.table.findByMac(macOf(11)).?);
    try testing.expectEqual(.address_pool_exhausted, other.suspicion.?.cause);
}

test "a set of one letter is a set, and an edge without programs says so" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site, .proxy);
    defer link.deinit();
    site.devices[0].bootProgramSet = "x";
    try site.decide();
    var packet = discover(1);
    try link.send(packet);
    site.io.sent.count = 0;
    const ref = site.boots.table.findByMac(macOf(1)).?;
    const suspicion = site.boot(ref).suspicion.?;
    try testing.expectEqual(.nbp_not_found, suspicion.cause);
    try testing.expectEqualStrings("this edge has no set x", suspicion.text.slice());
    // iPXE would take a program of that set, and gets no script in its place.
    packet.options.user_class = "iPXE";
    try link.send(packet);
    try testing.expectEqual(0, site.io.sent.count);
}

test "an address from another server's answer is the device's" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site, .proxy);
    defer link.deinit();
    try link.send(discover(1));
    site.io.sent.count = 0;
    const boot = site.boot(site.boots.table.findByMac(macOf(1)).?);
    try testing.expectEqual(null, boot.facts.ip);
    var request = discover(1);
    request.options.message_type = .request;
    request.options.requested_ip = .init(10, 77, 0, 50);
    request.options.server_identifier = .init(10, 77, 0, 3);
    try link.send(request);
    try testing.expect(boot.facts.ip.?.eql(.init(10, 77, 0, 50)));
    // Anybody could have sent that packet: it is proof only where the network is trusted.
    try testing.expect(boot.isAt(.init(10, 77, 0, 50)));
    boot.facts = .{};
    site.boots.trusted = &.{};
    try link.send(request);
    try testing.expect(boot.facts.ip.?.eql(.init(10, 77, 0, 50)));
    try testing.expect(!site.boots.isAt(boot, .init(10, 77, 0, 50)));
}

test "an offered address is asked for, and its client gets NAK if another machine answers" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site, .server);
    defer link.deinit();
    const probed = &site.io.probed;
    try link.send(discover(1));
    const offered = (try link.answer()).yiaddr;
    try testing.expectEqual(1, probed.count);
    try testing.expect(probed.constSlice()[0].eql(offered));
    link.port.heardHolder(offered, macOf(9), site.io.now_us);
    var request = discover(1);
    request.options.message_type = .request;
    request.options.requested_ip = offered;
    request.options.server_identifier = edge_ip;
    try link.send(request);
    try testing.expectEqual(.nak, (try link.answer()).options.message_type.?);
    try testing.expectEqual(1, probed.count);
}

test "a lease is not asked for again, and no answer ends it" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site, .server);
    defer link.deinit();
    try link.send(discover(1));
    const offered = (try link.answer()).yiaddr;
    var request = discover(1);
    request.options.message_type = .request;
    request.options.requested_ip = offered;
    request.options.server_identifier = edge_ip;
    try link.send(request);
    try testing.expectEqual(.ack, (try link.answer()).options.message_type.?);
    link.port.heardHolder(offered, macOf(9), site.io.now_us);
    try link.send(discover(1));
    try testing.expect((try link.answer()).yiaddr.eql(offered));
    try testing.expectEqual(1, site.io.probed.count);
    try link.send(request);
    try testing.expectEqual(.ack, (try link.answer()).options.message_type.?);
}
