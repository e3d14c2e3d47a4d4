//! Tests of service.zig with packets as real clients send them.

const std = @import("std");
const testing = std.testing;
const base = @import("base");
const dhcp = @import("wire").dhcp;
const DhcpService = @import("service.zig");
const Endpoint = base.Endpoint;
const Ip4 = base.Ip4;
const Mac = base.Mac;

pub const server_ip: Ip4 = .init(10, 77, 0, 2);
pub const other_server_ip: Ip4 = .init(10, 78, 0, 2);
pub const device: Mac = .fromInt(0x525400123456);
const nowhere: Endpoint = .{ .ip = .zero, .port = 68 };
pub const handle_text = "0123456789abcdef";
const target: DhcpService.BootTarget = .{ .boot = .{
    .handle = .{ .value = 0x0123456789abcdef },
    .programs = .choose(&.{ "ipxe.efi", "undionly.kpxe", "snponly.efi", "ipxe-arm64.efi" }),
} };
const second = std.time.us_per_s;

const bios_class = "PXEClient:Arch:00000:UNDI:002001";

pub const ServiceFixture = struct {
    service: DhcpService,
    target: DhcpService.BootTarget = target,
    now_us: u64 = 1,
    packet_buffer: [dhcp.packet_size_max]u8 = undefined,
    reply_buffer: DhcpService.ReplyBuffer = undefined,
    scratch: dhcp.Scratch = undefined,

    pub fn init(mode: DhcpService.Mode) !ServiceFixture {
        return .of(switch (mode) {
            inline else => |known| &.{comptime officeIn(known)},
        });
    }

    pub fn of(networks: []const DhcpService.Network) !ServiceFixture {
        const links: []const DhcpService.Link =
            &.{ .{ .ip = server_ip }, .{ .ip = other_server_ip } };
        var link_count: usize = 0;
        for (networks) |network| link_count += @intFromBool(network.link != null);
        return .{ .service = try .init(testing.allocator, .{
            .links = links[0..link_count],
            .networks = networks,
            .http_port = 6980,
        }) };
    }

    pub fn deinit(fixture: *ServiceFixture) void {
        fixture.service.deinit(testing.allocator);
    }

    pub fn ask(
        fixture: *ServiceFixture,
        arrival: DhcpService.Arrival,
        packet: dhcp.Packet,
    ) !DhcpService.Step {
        const bytes = try dhcp.emit(&packet, &fixture.packet_buffer);
        const service = &fixture.service;
        return switch (service.receive(fixture.now_us, arrival, bytes, &fixture.reply_buffer)) {
            .network_boot => |request| service.answer(
                fixture.now_us,
                &request,
                fixture.target,
                &fixture.reply_buffer,
            ),
            else => |step| step,
        };
    }

    /// Returns the reply of a step that must be one, with its packet.
    pub fn reply(
        fixture: *ServiceFixture,
        arrival: DhcpService.Arrival,
        packet: dhcp.Packet,
    ) !Answer {
        const step = try fixture.ask(arrival, packet);
        errdefer std.debug.print("step: {t}\n", .{step});
        if (step != .reply) return error.TestUnexpectedResult;
        return .{
            .reply = step.reply,
            .packet = try dhcp.parse(step.reply.payload, &fixture.scratch),
        };
    }

    pub fn expectIgnored(
        fixture: *ServiceFixture,
        reason: base.IgnoreReason,
        packet: dhcp.Packet,
    ) !void {
        const before = fixture.service.ignored.get(reason);
        const step = try fixture.ask(.{ .source = nowhere, .port = .dhcp }, packet);
        try testing.expectEqual(DhcpService.Step{ .ignored = reason }, step);
        try testing.expectEqual(before + 1, fixture.service.ignored.get(reason));
    }
};

fn officeIn(mode: DhcpService.Mode) DhcpService.Network {
    return .{
        .subnet = .of(server_ip, 24),
        .mode = mode,
        .link = 0,
        .pools = &.{.{ .first = .init(10, 77, 0, 10), .last = .init(10, 77, 0, 11) }},
        .routers = &.{server_ip},
        .dns_servers = &.{.init(10, 77, 0, 3)},
    };
}

pub const Answer = struct { reply: DhcpService.Reply, packet: dhcp.Packet };
pub const from_nowhere: DhcpService.Arrival = .{ .source = nowhere, .port = .dhcp };

pub fn discover() dhcp.Packet {
    return .{
        .op = .request,
        .xid = 0x123456ab,
        .chaddr = device,
        .options = .{
            .message_type = .discover,
            .vendor_class = bios_class,
            .client_arch = .bios,
            .client_machine_id = .{ .guid = @splat(9) },
        },
    };
}

pub fn plain(message_type: dhcp.MessageType) dhcp.Packet {
    return .{
        .op = .request,
        .xid = 7,
        .chaddr = device,
        .options = .{ .message_type = message_type },
    };
}

test "the proxy offer has exactly what real firmware needs" {
    var fixture: ServiceFixture = try .init(.proxy);
    defer fixture.deinit();
    const offer = try fixture.reply(from_nowhere, discover());
    const want: dhcp.Packet = .{
        .op = .reply,
        .xid = 0x123456ab,
        .siaddr = server_ip,
        .chaddr = device,
        .file = "b/" ++ handle_text ++ "/undionly.kpxe",
        .options = .{
            .message_type = .offer,
            .server_identifier = server_ip,
            .vendor_class = "PXEClient",
            .vendor_specific = &.{ 6, 1, 8, 0xff },
            .client_machine_id = .{ .guid = @splat(9) },
        },
    };
    try testing.expectEqualDeep(want, offer.packet);
    try testing.expectEqual(Endpoint{ .ip = .broadcast, .port = 68 }, offer.reply.destination);
    try testing.expect(offer.reply.names_boot_file);
    try testing.expectEqual(null, offer.reply.ip);
}

test "an answer goes to the address and port that the request came from" {
    var fixture: ServiceFixture = try .init(.proxy);
    defer fixture.deinit();
    const source: Endpoint = .{ .ip = .init(127, 0, 0, 1), .port = 40123 };
    const offer = try fixture.reply(.{ .source = source, .port = .dhcp }, discover());
    try testing.expectEqual(source, offer.reply.destination);
    var request = discover();
    request.options.message_type = .request;
    request.ciaddr = .init(10, 77, 0, 50);
    const pxe_source: Endpoint = .{ .ip = .init(10, 77, 0, 50), .port = 4011 };
    const ack = try fixture.reply(.{ .source = pxe_source, .port = .pxe }, request);
    try testing.expectEqual(pxe_source, ack.reply.destination);
    try testing.expectEqual(.ack, ack.reply.message_type);
    try testing.expectEqualStrings("b/" ++ handle_text ++ "/undionly.kpxe", ack.packet.file);
    try testing.expect(ack.packet.yiaddr.isZero());
}

test "each architecture gets its boot program, iPXE the script and HTTP clients a URL" {
    var fixture: ServiceFixture = try .init(.proxy);
    defer fixture.deinit();
    const url = "http://10.77.0.2:6980/b/" ++ handle_text ++ "/";
    const path = "b/" ++ handle_text ++ "/";
    const Case = struct {
        vendor_class: ?[]const u8,
        arch: ?u16 = null,
        user_class: ?[]const u8 = null,
        ipxe: ?[]const u8 = null,
        file: []const u8,
        class: []const u8 = "PXEClient",
    };
    const cases = [_]Case{
        .{ .vendor_class = "PXEClient", .arch = 0, .file = path ++ "undionly.kpxe" },
        .{ .vendor_class = "PXEClient", .file = path ++ "undionly.kpxe" },
        .{ .vendor_class = "PXEClient", .arch = 7, .file = path ++ "snponly.efi" },
        .{ .vendor_class = "PXEClient", .arch = 9, .file = path ++ "snponly.efi" },
        .{ .vendor_class = "PXEClient:Arch:00007:UNDI:003000", .file = path ++ "snponly.efi" },
        .{
            .vendor_class = "HTTPClient:Arch:00016:UNDI:003000",
            .arch = 16,
            .file = url ++ "snponly.efi",
            .class = "HTTPClient",
        },
        .{ .vendor_class = "PXEClient", .arch = 11, .file = path ++ "ipxe-arm64.efi" },
        .{
            .vendor_class = "HTTPClient:Arch:00019:UNDI:003000",
            .arch = 19,
            .file = url ++ "ipxe-arm64.efi",
            .class = "HTTPClient",
        },
        .{
            .vendor_class = bios_class,
            .arch = 0,
            .user_class = "iPXE",
            .file = url ++ "boot.ipxe",
        },
        .{ .vendor_class = bios_class, .arch = 0x77, .ipxe = "\x01", .file = url ++ "boot.ipxe" },
        .{ .vendor_class = null, .user_class = "\x04iPXE", .file = url ++ "boot.ipxe" },
    };
    for (cases) |case| {
        errdefer std.debug.print("case: {any}\n", .{case});
        var packet = discover();
        packet.options.vendor_class = case.vendor_class;
        packet.options.client_arch = if (case.arch) |number| @fromBackingInt(number) else null;
        packet.options.user_class = case.user_class;
        packet.options.ipxe = case.ipxe;
        const offer = try fixture.reply(from_nowhere, packet);
        try testing.expectEqualStrings(case.file, offer.packet.file);
        try testing.expectEqualStrings(case.class, offer.packet.options.vendor_class.?);
    }
}

test "iPXE is told to load a program where its device was given others, by TFTP" {
    var fixture: ServiceFixture = try .init(.proxy);
    defer fixture.deinit();
    var packet = discover();
    packet.options.user_class = "iPXE";
    const script = try fixture.reply(from_nowhere, packet);
    try testing.expectEqualStrings(
        "http://10.77.0.2:6980/b/" ++ handle_text ++ "/boot.ipxe",
        script.packet.file,
    );
    fixture.target.boot.ipxe_takes_program = true;
    const program = try fixture.reply(from_nowhere, packet);
    try testing.expectEqualStrings("b/" ++ handle_text ++ "/undionly.kpxe", program.packet.file);
}

test "an architecture without a program gets no proxy offer" {
    var fixture: ServiceFixture = try .init(.proxy);
    defer fixture.deinit();
    var packet = discover();
    packet.options.client_arch = .uefi_x86;
    try fixture.expectIgnored(.dhcp_no_boot_program, packet);
    packet.options.client_arch = @fromBackingInt(0xffff);
    try fixture.expectIgnored(.dhcp_no_boot_program, packet);
}

test "a packet that is no network boot's request is ignored and counted" {
    var fixture: ServiceFixture = try .init(.proxy);
    defer fixture.deinit();
    try fixture.expectIgnored(.dhcp_not_a_network_boot, plain(.discover));
    try fixture.expectIgnored(.dhcp_message_type, plain(.release));
    var packet = discover();
    packet.options.message_type = null;
    try fixture.expectIgnored(.dhcp_message_type, packet);
    packet = discover();
    packet.op = .reply;
    try fixture.expectIgnored(.dhcp_not_a_request, packet);
    packet = discover();
    packet.chaddr = .broadcast;
    try fixture.expectIgnored(.dhcp_bad_client_address, packet);
    packet = discover();
    packet.giaddr = .init(10, 0, 0, 1);
    try fixture.expectIgnored(.dhcp_relayed, packet);
    const step = fixture.service.receive(1, from_nowhere, "garbage", &fixture.reply_buffer);
    try testing.expectEqual(DhcpService.Step{ .ignored = .dhcp_not_dhcp }, step);
}

test "a device that the boot policy ignores gets no answer in either mode" {
    for ([_]DhcpService.Mode{ .proxy, .server }) |mode| {
        var fixture: ServiceFixture = try .init(mode);
        defer fixture.deinit();
        const service = &fixture.service;
        const bytes = try dhcp.emit(&discover(), &fixture.packet_buffer);
        const asked = service.receive(1, from_nowhere, bytes, &fixture.reply_buffer);
        try testing.expectEqual(device, asked.network_boot.client.mac);
        const step = service.answer(1, &asked.network_boot, .ignore, &fixture.reply_buffer);
        try testing.expectEqual(DhcpService.Step{ .ignored = .dhcp_unknown_device }, step);
    }
}

test "a disabled service answers nothing" {
    var fixture: ServiceFixture = try .init(.off);
    defer fixture.deinit();
    try fixture.expectIgnored(.dhcp_off, discover());
}

test "in proxy mode the address is learned from the request to the other server" {
    var fixture: ServiceFixture = try .init(.proxy);
    defer fixture.deinit();
    var request = discover();
    request.options.message_type = .request;
    request.options.server_identifier = .init(10, 77, 0, 1);
    request.options.requested_ip = .init(10, 77, 0, 23);
    const step = try fixture.ask(from_nowhere, request);
    try testing.expectEqual(Ip4.init(10, 77, 0, 23), step.learned.ip);
    try testing.expect(step.learned.is_network_boot);
    // Anybody may send such a request: it is no lease.
    try testing.expectEqual(null, fixture.service.macOf(1, .init(10, 77, 0, 23)));
    request.options.requested_ip = null;
    try fixture.expectIgnored(.dhcp_other_server, request);
    request.options.server_identifier = server_ip;
    try testing.expectEqual(.ack, (try fixture.reply(from_nowhere, request)).reply.message_type);
}

test "the server gives a network boot an address and its program in one exchange" {
    var fixture: ServiceFixture = try .init(.server);
    defer fixture.deinit();
    const offer = try fixture.reply(from_nowhere, discover());
    const ip = offer.packet.yiaddr;
    try testing.expect(ip.isUnicast());
    try testing.expectEqualStrings("b/" ++ handle_text ++ "/undionly.kpxe", offer.packet.file);
    try testing.expectEqual(Ip4.init(255, 255, 255, 0), offer.packet.options.subnet_mask.?);
    try testing.expectEqual(3600, offer.packet.options.lease_time_s.?);
    try testing.expectEqual(server_ip, offer.packet.options.routers[0]);
    try testing.expectEqual(null, fixture.service.macOf(1, ip));
    var request = discover();
    request.options.message_type = .request;
    request.options.server_identifier = server_ip;
    request.options.requested_ip = ip;
    const ack = try fixture.reply(from_nowhere, request);
    try testing.expectEqual(.ack, ack.reply.message_type);
    try testing.expectEqual(ip, ack.packet.yiaddr);
    try testing.expectEqual(ip, ack.reply.ip.?);
    try testing.expectEqual(device, fixture.service.macOf(1, ip).?);
    try testing.expectEqual(1, fixture.service.leasesOf(0).?.change_count);
}

test "the server gives plain clients an address and no boot file" {
    var fixture: ServiceFixture = try .init(.server);
    defer fixture.deinit();
    const offer = try fixture.reply(from_nowhere, plain(.discover));
    try testing.expect(offer.packet.yiaddr.isUnicast());
    try testing.expectEqualStrings("", offer.packet.file);
    try testing.expectEqual(null, offer.packet.options.vendor_class);
    try testing.expect(!offer.reply.names_boot_file);
}

test "the server refuses unavailable addresses, and is silent about others' addresses" {
    var fixture: ServiceFixture = try .init(.server);
    defer fixture.deinit();
    const taken = (try fixture.reply(from_nowhere, plain(.discover))).packet.yiaddr;
    // After a move: it requests an address of another network.
    var request = plain(.request);
    request.chaddr = .fromInt(0x02bf00000001);
    request.options.requested_ip = .init(10, 99, 0, 99);
    const nak = try fixture.reply(from_nowhere, request);
    try testing.expectEqual(.nak, nak.reply.message_type);
    try testing.expect(nak.packet.yiaddr.isZero());
    try testing.expectEqual(null, nak.packet.options.lease_time_s);
    request.options.requested_ip = taken;
    try testing.expectEqual(.nak, (try fixture.reply(from_nowhere, request)).reply.message_type);
    // Another server may have assigned it.
    request.options.requested_ip = .init(10, 77, 0, 99);
    try fixture.expectIgnored(.dhcp_bad_address, request);
    request.options.server_identifier = server_ip;
    try testing.expectEqual(.nak, (try fixture.reply(from_nowhere, request)).reply.message_type);
    request.options.requested_ip = null;
    try fixture.expectIgnored(.dhcp_bad_option, request);
}

test "an offer that lost against another server's is free again" {
    var fixture: ServiceFixture = try .init(.server);
    defer fixture.deinit();
    var others: [2]Mac = undefined;
    for (&others, 1..) |*mac, number| mac.* = .fromInt(0x02bf00000000 + @as(u48, @intCast(number)));
    for (others) |mac| {
        var packet = plain(.discover);
        packet.chaddr = mac;
        _ = try fixture.reply(from_nowhere, packet);
    }
    try fixture.expectIgnored(.dhcp_no_free_address, plain(.discover));
    var request = plain(.request);
    request.chaddr = others[0];
    request.options.server_identifier = .init(10, 77, 0, 1);
    try fixture.expectIgnored(.dhcp_other_server, request);
    _ = try fixture.reply(from_nowhere, plain(.discover));
}

test "a lease is renewed, released and declined" {
    var fixture: ServiceFixture = try .init(.server);
    defer fixture.deinit();
    const ip = (try fixture.reply(from_nowhere, plain(.discover))).packet.yiaddr;
    var renewal = plain(.request);
    renewal.ciaddr = ip;
    const source: Endpoint = .{ .ip = ip, .port = 68 };
    const ack = try fixture.reply(.{ .source = source, .port = .dhcp }, renewal);
    try testing.expectEqual(.ack, ack.reply.message_type);
    try testing.expectEqual(source, ack.reply.destination);
    fixture.now_us += 3599 * second;
    try testing.expectEqual(device, fixture.service.macOf(fixture.now_us, ip).?);
    var release = plain(.release);
    release.ciaddr = ip;
    try testing.expectEqual(DhcpService.Step.recorded, try fixture.ask(from_nowhere, release));
    try testing.expectEqual(null, fixture.service.macOf(fixture.now_us, ip));
    try fixture.expectIgnored(.dhcp_bad_address, release);
    _ = try fixture.reply(from_nowhere, plain(.discover));
    var decline = plain(.decline);
    decline.options.requested_ip = ip;
    try testing.expectEqual(DhcpService.Step.recorded, try fixture.ask(from_nowhere, decline));
    const other = (try fixture.reply(from_nowhere, plain(.discover))).packet.yiaddr;
    try testing.expect(!other.eql(ip));
}

test "INFORM is answered without an address" {
    var fixture: ServiceFixture = try .init(.server);
    defer fixture.deinit();
    var inform = plain(.inform);
    inform.ciaddr = .init(10, 77, 0, 200);
    const ack = try fixture.reply(from_nowhere, inform);
    try testing.expectEqual(.ack, ack.reply.message_type);
    try testing.expect(ack.packet.yiaddr.isZero());
    try testing.expectEqual(null, ack.packet.options.lease_time_s);
    try testing.expectEqual(Ip4.init(10, 77, 0, 200), ack.reply.ip.?);
}
