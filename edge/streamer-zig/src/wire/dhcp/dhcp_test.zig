//! Tests of dhcp.zig, with the golden packets of `packages/proto/vectors/dhcp-v1.json`.

const std = @import("std");
const testing = std.testing;
const base = @import("base");
const dhcp = @import("dhcp.zig");
const Ip4 = base.Ip4;

/// A packet's fields as the vectors write them; a missing one is absent, zero or empty.
const Fields = struct {
    op: dhcp.Op,
    hops: u8 = 0,
    xid: u32,
    secs: u16,
    broadcast: bool,
    ciaddr: []const u8 = "0.0.0.0",
    yiaddr: []const u8 = "0.0.0.0",
    siaddr: []const u8 = "0.0.0.0",
    giaddr: []const u8 = "0.0.0.0",
    chaddr: []const u8,
    sname: []const u8 = "",
    file: []const u8 = "",
    messageType: ?u8 = null,
    serverIdentifier: ?[]const u8 = null,
    requestedIp: ?[]const u8 = null,
    leaseTimeS: ?u32 = null,
    subnetMask: ?[]const u8 = null,
    routers: []const []const u8 = &.{},
    dnsServers: []const []const u8 = &.{},
    hostName: ?[]const u8 = null,
    vendorSpecific: ?[]const u8 = null,
    parameterRequestList: ?[]const u8 = null,
    maxMessageSize: ?u16 = null,
    vendorClass: ?[]const u8 = null,
    clientIdentifier: ?[]const u8 = null,
    tftpServerName: ?[]const u8 = null,
    bootFileName: ?[]const u8 = null,
    userClass: ?[]const u8 = null,
    clientArch: ?u16 = null,
    clientNdi: ?[]const u8 = null,
    machineId: ?[]const u8 = null,
    ipxe: ?[]const u8 = null,
    domainName: ?[]const u8 = null,
    interfaceMtu: ?u16 = null,
    ntpServers: []const []const u8 = &.{},
    renewalTimeS: ?u32 = null,
    rebindingTimeS: ?u32 = null,
    subnetSelection: ?[]const u8 = null,
    relayAgent: ?[]const u8 = null,
    linkSelection: ?[]const u8 = null,
    isIpxe: bool,
};

const Vector = struct {
    name: []const u8,
    hex: []const u8,
    fields: ?Fields = null,
    @"error": ?[]const u8 = null,
};

const Vectors = struct { version: u32, about: []const u8, vectors: []const Vector };

test "each golden packet gives its fields or its error, and survives being emitted again" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const text = @embedFile("dhcp_vectors_json");
    const vectors = try std.json.parseFromSliceLeaky(Vectors, arena.allocator(), text, .{});
    try testing.expectEqual(1, vectors.version);
    for (vectors.vectors) |vector| {
        errdefer std.debug.print("vector: {s}\n", .{vector.name});
        const payload = try arena.allocator().alloc(u8, vector.hex.len / 2);
        _ = try std.fmt.hexToBytes(payload, vector.hex);
        var scratch: dhcp.Scratch = undefined;
        const result = dhcp.parse(payload, &scratch);
        if (vector.@"error") |name| {
            if (result) |_| return error.TestUnexpectedResult else |refusal| {
                try testing.expectEqualStrings(name, @errorName(refusal));
            }
            continue;
        }
        const packet = try result;
        try expectFields(vector.fields.?, &packet);
        try expectSurvives(&packet);
    }
}

fn expectFields(want: Fields, packet: *const dhcp.Packet) !void {
    const options = &packet.options;
    try testing.expectEqual(want.op, packet.op);
    try testing.expectEqual(want.hops, packet.hops);
    try testing.expectEqual(want.xid, packet.xid);
    try testing.expectEqual(want.secs, packet.secs);
    try testing.expectEqual(want.broadcast, packet.broadcast);
    try expectIp(want.ciaddr, packet.ciaddr);
    try expectIp(want.yiaddr, packet.yiaddr);
    try expectIp(want.siaddr, packet.siaddr);
    try expectIp(want.giaddr, packet.giaddr);
    try testing.expectEqualStrings(want.chaddr, &packet.chaddr.toText());
    try testing.expectEqualStrings(want.sname, packet.sname);
    try testing.expectEqualStrings(want.file, packet.file);
    const message_type: ?u8 = if (options.message_type) |value| @backingInt(value) else null;
    try testing.expectEqual(want.messageType, message_type);
    try expectIp(want.serverIdentifier, options.server_identifier);
    try expectIp(want.requestedIp, options.requested_ip);
    try testing.expectEqual(want.leaseTimeS, options.lease_time_s);
    try expectIp(want.subnetMask, options.subnet_mask);
    try expectIps(want.routers, options.routers);
    try expectIps(want.dnsServers, options.dns_servers);
    try expectText(want.hostName, options.host_name);
    try expectHex(want.vendorSpecific, options.vendor_specific);
    try expectHex(want.parameterRequestList, options.parameter_request_list);
    try testing.expectEqual(want.maxMessageSize, options.max_message_size);
    try expectText(want.vendorClass, options.vendor_class);
    try expectHex(want.clientIdentifier, options.client_identifier);
    try expectText(want.tftpServerName, options.tftp_server_name);
    try expectText(want.bootFileName, options.boot_file_name);
    try expectText(want.userClass, options.userClassText());
    const client_arch: ?u16 = if (options.client_arch) |value| @backingInt(value) else null;
    try testing.expectEqual(want.clientArch, client_arch);
    const ndi: ?[]const u8 = if (options.client_ndi) |*value| value else null;
    try expectHex(want.clientNdi, ndi);
    const machine = if (options.client_machine_id) |id| id.uuid() else null;
    const machine_text: ?[36]u8 = if (machine) |uuid| uuid.toText() else null;
    try expectText(want.machineId, if (machine_text) |*value| value else null);
    try expectHex(want.ipxe, options.ipxe);
    try testing.expectEqual(want.isIpxe, options.isIpxe());
    try expectText(want.domainName, options.domain_name);
    try testing.expectEqual(want.interfaceMtu, options.interface_mtu);
    try expectIps(want.ntpServers, options.ntp_servers);
    try testing.expectEqual(want.renewalTimeS, options.renewal_time_s);
    try testing.expectEqual(want.rebindingTimeS, options.rebinding_time_s);
    try expectIp(want.subnetSelection, options.subnet_selection);
    try expectHex(want.relayAgent, options.relay_agent);
    try expectIp(want.linkSelection, options.linkSelection());
}

fn expectSurvives(packet: *const dhcp.Packet) !void {
    var buffer: [dhcp.packet_size_max]u8 = undefined;
    const bytes = try dhcp.emit(packet, &buffer);
    try testing.expect(bytes.len >= dhcp.packet_size_min);
    var scratch: dhcp.Scratch = undefined;
    try testing.expectEqualDeep(packet.*, try dhcp.parse(bytes, &scratch));
}

fn expectIp(want: ?[]const u8, got: ?Ip4) !void {
    const wanted: ?Ip4 = if (want) |text| try .parse(text) else null;
    try testing.expectEqual(wanted, got);
}

fn expectIps(want: []const []const u8, got: []const Ip4) !void {
    try testing.expectEqual(want.len, got.len);
    for (want, got) |text, ip| try expectIp(text, ip);
}

fn expectText(want: ?[]const u8, got: ?[]const u8) !void {
    try testing.expectEqual(want == null, got == null);
    if (want) |text| try testing.expectEqualStrings(text, got.?);
}

fn expectHex(want: ?[]const u8, got: ?[]const u8) !void {
    try testing.expectEqual(want == null, got == null);
    const hex = want orelse return;
    var buffer: [512]u8 = undefined;
    try testing.expectEqualSlices(u8, try std.fmt.hexToBytes(&buffer, hex), got.?);
}

test "a packet with every option survives" {
    const mac = try base.Mac.parse("02:bf:00:00:00:01");
    const long: [600]u8 = @splat('u');
    const packet: dhcp.Packet = .{
        .op = .reply,
        .hops = 3,
        .xid = 0xffffffff,
        .secs = 65535,
        .broadcast = true,
        .ciaddr = .init(1, 2, 3, 4),
        .yiaddr = .init(5, 6, 7, 8),
        .siaddr = .init(9, 10, 11, 12),
        .giaddr = .init(13, 14, 15, 16),
        .chaddr = mac,
        .sname = "edge",
        .file = "b/0123456789abcdef/ipxe.efi",
        .options = .{
            .message_type = .ack,
            .server_identifier = .init(10, 0, 0, 1),
            .requested_ip = .init(10, 0, 0, 2),
            .lease_time_s = 86400,
            .subnet_mask = .init(255, 255, 0, 0),
            .routers = &.{ .init(10, 0, 0, 3), .init(10, 0, 0, 4) },
            .dns_servers = &.{.init(10, 0, 0, 5)},
            .host_name = "",
            .vendor_specific = &.{ 6, 1, 8, 255 },
            .parameter_request_list = &.{ 1, 3, 6 },
            .max_message_size = 1472,
            .vendor_class = "PXEClient",
            .client_identifier = &.{ 1, 2, 3 },
            .tftp_server_name = "10.0.0.1",
            .boot_file_name = &long,
            .user_class = "iPXE",
            .client_arch = .uefi_arm64,
            .client_ndi = .{ 1, 3, 16 },
            .client_machine_id = .{ .guid = @splat(7) },
            .ipxe = &.{ 1, 1, 1 },
            .domain_name = "example.org",
            .interface_mtu = 9000,
            .ntp_servers = &.{.init(10, 0, 0, 6)},
            .renewal_time_s = 43200,
            .rebinding_time_s = 75600,
            .subnet_selection = .init(10, 9, 0, 0),
            .relay_agent = &.{ 1, 1, 7 },
        },
    };
    try expectSurvives(&packet);
}

test "a packet that does not fit is refused by emit" {
    const long: [129]u8 = @splat('a');
    var packet: dhcp.Packet = .{ .op = .reply, .xid = 1, .chaddr = .zero, .file = &long };
    var buffer: [dhcp.packet_size_min]u8 = undefined;
    try testing.expectError(error.TooLong, dhcp.emit(&packet, &buffer));
    packet.file = long[0..128];
    try testing.expectEqual(dhcp.packet_size_min, (try dhcp.emit(&packet, &buffer)).len);
    packet.options.boot_file_name = &long;
    try testing.expectError(error.NoSpace, dhcp.emit(&packet, &buffer));
}

test "an answer too long for one field uses the others, and the relay agent's option is last" {
    const long: [120]u8 = @splat('d');
    const relay: [200]u8 = @splat(9);
    const ips: [4]Ip4 = @splat(.init(10, 0, 0, 5));
    const packet: dhcp.Packet = .{
        .op = .reply,
        .xid = 1,
        .chaddr = .fromInt(0x02bf00000001),
        .options = .{
            .message_type = .offer,
            .server_identifier = .init(10, 0, 0, 1),
            .domain_name = &long,
            .dns_servers = &ips,
            .ntp_servers = &ips,
            .relay_agent = &relay,
            .client_identifier = &@as([60]u8, @splat(1)),
        },
    };
    var buffer: [dhcp.packet_size_max]u8 = undefined;
    var scratch: dhcp.Scratch = undefined;
    const bytes = try dhcp.emitWithin(&packet, dhcp.reply_size_min, &buffer);
    try testing.expect(bytes.len <= dhcp.reply_size_min);
    try testing.expectEqualDeep(packet, try dhcp.parse(bytes, &scratch));
    // END, and before it all of option 82.
    try testing.expectEqual(255, bytes[bytes.len - 1]);
    try testing.expectEqualSlices(
        u8,
        &(.{ 82, relay.len } ++ relay),
        bytes[bytes.len - 203 .. bytes.len - 1],
    );
    // With a boot file in its field some option does not fit, and no part of it is written.
    var with_file = packet;
    with_file.file = "b/0123456789abcdef/undionly.kpxe";
    const shorter =
        try dhcp.parse(try dhcp.emitWithin(&with_file, dhcp.reply_size_min, &buffer), &scratch);
    try testing.expectEqual(null, shorter.options.domain_name);
    try testing.expectEqualStrings(with_file.file, shorter.file);
    try testing.expectEqual(4, shorter.options.ntp_servers.len);
    try testing.expectEqualSlices(u8, &relay, shorter.options.relay_agent.?);
}

test "an answer may be as long as its client accepts, at least 548 bytes and at most 1472" {
    const cases = [_]struct { ?u16, usize }{
        .{ null, 548 },
        .{ 0, 548 },
        .{ 576, 548 },
        .{ 1000, 972 },
        .{ 1472, 1444 },
        .{ 1500, 1472 },
        .{ 65280, 1472 },
    };
    for (cases) |case| try testing.expectEqual(case[1], dhcp.replySizeMax(case[0]));
}

test "a boot file name in option 67 loses its zero byte and wins over the file field" {
    var packet: dhcp.Packet = .{ .op = .reply, .xid = 1, .chaddr = .zero };
    try testing.expectEqual(null, packet.bootFileName());
    packet.file = "field";
    try testing.expectEqualStrings("field", packet.bootFileName().?);
    packet.options.boot_file_name = "option\x00";
    try testing.expectEqualStrings("option", packet.bootFileName().?);
}

fn fuzzOne(_: void, smith: *testing.Smith) !void {
    var payload: [dhcp.packet_size_max]u8 = undefined;
    const size = smith.slice(&payload);
    var scratch: dhcp.Scratch = undefined;
    const packet = dhcp.parse(payload[0..size], &scratch) catch return;
    try testing.expect(packet.file.len <= dhcp.file_size_max);
}

test "fuzz: any payload is parsed or refused" {
    try testing.fuzz({}, fuzzOne, .{});
}
