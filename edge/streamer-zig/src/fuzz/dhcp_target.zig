//! Fuzzes DHCP: the parser alone, and the service against a model of which device has which
//! address.

const std = @import("std");
const base = @import("base");
const dhcp = @import("wire").dhcp;
const core = @import("core");
const DhcpService = core.dhcp.Service;
const Client = core.dhcp.Leases.Client;
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;
const expectEqual = fuzz_case.expectEqual;
const Ip4 = base.Ip4;
const Ip4Prefix = base.Ip4Prefix;
const Mac = base.Mac;

/// More than a packet may have, to generate packets that are too long.
const buffer_size = dhcp.packet_size_max + 200;

/// Space for the variable parts of a generated packet.
const Texts = struct { parts: [13][300]u8 = undefined };

pub fn parser(case: *Case) Violation!bool {
    var buffer: [buffer_size]u8 = undefined;
    const payload = try makePayload(case, &buffer);
    var scratch: dhcp.Scratch = undefined;
    const packet = dhcp.parse(payload, &scratch) catch return false;
    try expect(packet.file.len <= dhcp.file_size_max, "a file name fits its field");
    try expect(packet.sname.len <= dhcp.sname_size_max, "a server name fits its field");
    _ = packet.options.userClassText();
    _ = packet.bootFileName();
    _ = packet.options.linkSelection();
    try survives(&packet);
    try fits(case, &packet);
    return true;
}

fn makePayload(case: *Case, buffer: []u8) Violation![]u8 {
    if (case.prng.chance(1, 8)) return case.garbage(buffer);
    var texts: Texts = .{};
    const packet = makePacket(case, &texts);
    const bytes = dhcp.emit(&packet, buffer) catch |refusal| switch (refusal) {
        error.NoSpace => return case.garbage(buffer),
        error.TooLong => return fuzz_case.violated("a made packet has names that fit"),
    };
    if (case.prng.chance(1, 4)) {
        try survives(&packet);
        return bytes;
    }
    return case.mutate(buffer, bytes.len);
}

fn survives(packet: *const dhcp.Packet) Violation!void {
    var buffer: [buffer_size * 2]u8 = undefined;
    const bytes = dhcp.emit(packet, &buffer) catch
        return fuzz_case.violated("a parsed packet can be emitted");
    // Options from `file` and `sname` are emitted in the option part and may make it too long.
    if (bytes.len > dhcp.packet_size_max) return;
    var scratch: dhcp.Scratch = undefined;
    const again = dhcp.parse(bytes, &scratch) catch
        return fuzz_case.violated("an emitted packet is parsed");
    try expectEqual(packet.*, again, "parse(emit(x)) == x");
}

/// Checks that the packet can be emitted in any size, and parsing returns what was emitted.
fn fits(case: *Case, packet: *const dhcp.Packet) Violation!void {
    if (packet.options.relay_agent) |value| if (value.len > 255) return;
    var buffer: [dhcp.packet_size_max]u8 = undefined;
    const size_max: usize = @intCast(case.prng.between(dhcp.reply_size_min, dhcp.reply_size_max));
    const bytes = dhcp.emitWithin(packet, size_max, &buffer) catch
        return fuzz_case.violated("a parsed packet fits any size");
    try expect(bytes.len <= size_max, "an answer keeps to its size");
    var scratch: dhcp.Scratch = undefined;
    const again = dhcp.parse(bytes, &scratch) catch
        return fuzz_case.violated("a packet that was made to fit is parsed");
    try expectEqual(
        packet.options.message_type,
        again.options.message_type,
        "the message type always fits",
    );
    if (packet.options.relay_agent) |value|
        try expect(
            std.mem.eql(u8, value, again.options.relay_agent orelse ""),
            "a relay agent's option is whole",
        );
}

fn makePacket(case: *Case, texts: *Texts) dhcp.Packet {
    const prng = &case.prng;
    var packet: dhcp.Packet = .{
        .op = if (prng.chance(1, 8)) .reply else .request,
        .hops = @truncate(prng.nextU32()),
        .xid = prng.nextU32(),
        .secs = @truncate(prng.nextU32()),
        .broadcast = prng.chance(1, 2),
        .chaddr = .fromInt(@truncate(prng.nextU64())),
        .sname = case.text(texts.parts[0][0..dhcp.sname_size_max], 0),
        .file = case.text(texts.parts[1][0..dhcp.file_size_max], 0),
    };
    for ([_]*Ip4{ &packet.ciaddr, &packet.yiaddr, &packet.siaddr, &packet.giaddr }) |ip|
        ip.* = case.ip();
    packet.options = .{
        .message_type = case.maybe(@as(dhcp.MessageType, @fromBackingInt(case.byte()))),
        .server_identifier = case.maybe(case.ip()),
        .requested_ip = case.maybe(case.ip()),
        .lease_time_s = case.maybe(prng.nextU32()),
        .subnet_mask = case.maybe(case.ip()),
        .routers = makeIps(case, &texts.parts[2]),
        .dns_servers = makeIps(case, &texts.parts[3]),
        .host_name = case.maybe(@as([]const u8, case.text(texts.parts[4][0..40], 0))),
        .vendor_specific = case.maybe(@as([]const u8, case.garbage(texts.parts[5][0..40]))),
        .max_message_size = case.maybe(case.number()),
        .vendor_class = case.maybe(@as([]const u8, case.text(&texts.parts[6], 0))),
        .boot_file_name = case.maybe(@as([]const u8, case.text(&texts.parts[7], 0))),
        .user_class = case.maybe(@as([]const u8, case.garbage(texts.parts[8][0..20]))),
        .client_arch = case.maybe(@as(dhcp.ClientArch, @fromBackingInt(case.number()))),
        .client_ndi = case.maybe([3]u8{ 1, 2, 3 }),
        .client_machine_id = case.maybe(dhcp.MachineId{ .guid = @splat(case.byte()) }),
        .ipxe = case.maybe(@as([]const u8, case.garbage(texts.parts[9][0..20]))),
        .renewal_time_s = case.maybe(prng.nextU32()),
        .rebinding_time_s = case.maybe(prng.nextU32()),
        .domain_name = case.maybe(@as([]const u8, case.text(&texts.parts[10], 0))),
        .interface_mtu = case.maybe(case.number()),
        .ntp_servers = makeIps(case, &texts.parts[11]),
        .subnet_selection = case.maybe(case.ip()),
        .relay_agent = case.maybe(@as([]const u8, case.garbage(&texts.parts[12]))),
    };
    return packet;
}

fn makeIps(case: *Case, room: *[300]u8) []const Ip4 {
    const count: usize = @intCast(case.prng.below(4));
    case.prng.fill(room[0 .. count * 4]);
    return @ptrCast(room[0 .. count * 4]);
}

const server_ip: Ip4 = .init(10, 0, 0, 1);
const relay_ip: Ip4 = .init(10, 9, 0, 1);
const pool_size = 5;
/// The first network has the server's own address in it; the other is behind a relay agent.
const pools = [_]core.dhcp.network.Pool{
    .{ .first = server_ip, .last = .init(10, 0, 0, pool_size) },
    .{ .first = .init(10, 9, 0, 10), .last = .init(10, 9, 0, 9 + pool_size) },
};
const device_count = 7;
const packets_per_case = 32;
const lease_time_s = 60;
const second = std.time.us_per_s;
const decline_us = 600 * second;
/// This device must not be booted.
const ignored_device = device_count - 1;
/// Owner of the second address of the first pool.
const reserved_device = 2;

/// What the clients were offered from both pools.
const Model = struct {
    holders: [pools.len * pool_size]Holder = @splat(.{}),

    const Holder = struct {
        client: Client = .nobody,
        until_us: u64 = 0,
        declined_until_us: u64 = 0,
    };

    fn holderOf(model: *Model, ip: Ip4) ?*Holder {
        for (pools, 0..) |pool, index| {
            const offset = ip.toInt() -% pool.first.toInt();
            if (offset < pool_size) return &model.holders[index * pool_size + offset];
        }
        return null;
    }

    fn granted(
        model: *Model,
        now_us: u64,
        client: *const Client,
        packet: *const dhcp.Packet,
    ) Violation!void {
        const ip = packet.yiaddr;
        const holder = model.holderOf(ip) orelse
            return fuzz_case.violated("an address is of a pool");
        try expect(!ip.eql(server_ip), "the server's own address is not given away");
        const is_other = !holder.client.isUnknown() and !holder.client.eql(client) and
            holder.until_us > now_us;
        try expect(!is_other, "no address has two clients whose leases run");
        try expect(
            holder.declined_until_us <= now_us,
            "an address in use by somebody is left alone",
        );
        const is_reserved = ip.eql(.init(10, 0, 0, 2));
        if (is_reserved) try expectEqual(
            deviceMac(reserved_device),
            client.mac,
            "a reserved address is its device's",
        );
        const time_s = packet.options.lease_time_s orelse 0;
        try expect(time_s >= lease_time_s and time_s <= 120, "a lease keeps to its limits");
        holder.* = .{ .client = client.*, .until_us = now_us + @as(u64, time_s) * second };
    }

    fn released(model: *Model, now_us: u64, packet: *const dhcp.Packet) void {
        const is_decline = packet.options.message_type == .decline;
        const ip = if (is_decline) packet.options.requested_ip.? else packet.ciaddr;
        const holder = model.holderOf(ip).?;
        holder.* = .{ .declined_until_us = if (is_decline) now_us + decline_us else 0 };
    }
};

pub fn service(case: *Case) Violation!bool {
    const prng = &case.prng;
    const mode: DhcpService.Mode = if (prng.chance(1, 2)) .proxy else .server;
    const networks = [_]DhcpService.Network{
        .{
            .subnet = .of(server_ip, 24),
            .mode = mode,
            .link = 0,
            .pools = pools[0..1],
            .reservations = &.{.{ .ip = .init(10, 0, 0, 2), .mac = deviceMac(reserved_device) }},
            .routers = &.{server_ip},
            .domain_name = "a-domain-of-some-length.example.org",
            .lease_time_s = lease_time_s,
            .lease_time_max_s = 120,
            .authoritative = prng.chance(1, 2),
        },
        .{
            .subnet = .of(relay_ip, 24),
            .mode = mode,
            .pools = pools[1..2],
            .lease_time_s = lease_time_s,
            .lease_time_max_s = 120,
        },
    };
    var machine = DhcpService.init(case.gpa, .{
        .links = &.{.{ .ip = server_ip }},
        .networks = &networks,
        .http_port = 65535,
    }) catch return fuzz_case.violated("a service of this size can be made");
    defer machine.deinit(case.gpa);
    var model: Model = .{};
    var now_us: u64 = 1;
    var is_answered = false;
    for (0..packets_per_case) |_| {
        now_us += prng.below(30 * second);
        var buffer: [buffer_size]u8 = undefined;
        const datagram = try makeRequest(case, &buffer);
        is_answered = try exchange(case, &machine, &model, now_us, datagram) or is_answered;
    }
    return is_answered;
}

/// A packet of one of a few devices, sometimes damaged.
fn makeRequest(case: *Case, buffer: []u8) Violation![]u8 {
    const prng = &case.prng;
    const types = [_]dhcp.MessageType{ .discover, .request, .request, .decline, .release, .inform };
    const classes = [_]?[]const u8{ "PXEClient:Arch:00007:UNDI", "PXEClient", "HTTPClient", null };
    const archs = [_]?dhcp.ClientArch{ .bios, .uefi_x64, .uefi_x64_http, .uefi_arm64, null };
    const relays = [_]Ip4{ .zero, .zero, .zero, relay_ip, case.ip() };
    const ids = [_]?[]const u8{ null, null, "\x00one", "\x00two", "\x01" };
    const selections = [_]?Ip4{ null, null, null, server_ip, relay_ip, case.ip() };
    var relay_option: [300]u8 = undefined;
    var id: [300]u8 = undefined;
    const packet: dhcp.Packet = .{
        .op = .request,
        .xid = prng.nextU32(),
        .hops = @intCast(prng.below(20)),
        .broadcast = prng.chance(1, 2),
        .ciaddr = if (prng.chance(1, 3)) poolAddress(prng) else .zero,
        .giaddr = prng.pick(Ip4, &relays),
        .chaddr = deviceMac(@intCast(prng.below(device_count))),
        .options = .{
            .message_type = prng.pick(dhcp.MessageType, &types),
            .requested_ip = case.maybe(poolAddress(prng)),
            .lease_time_s = case.maybe(prng.nextU32() % 200),
            .server_identifier = if (prng.chance(1, 4)) server_ip else null,
            .vendor_class = prng.pick(?[]const u8, &classes),
            .user_class = if (prng.chance(1, 4)) "iPXE" else null,
            .client_arch = prng.pick(?dhcp.ClientArch, &archs),
            .client_machine_id = case.maybe(dhcp.MachineId{ .guid = @splat(5) }),
            .client_identifier = if (prng.chance(1, 8))
                case.garbage(&id)
            else
                prng.pick(?[]const u8, &ids),
            .max_message_size = case.maybe(case.number()),
            .subnet_selection = prng.pick(?Ip4, &selections),
            .relay_agent = if (prng.chance(1, 4)) case.garbage(&relay_option) else null,
        },
    };
    const bytes = dhcp.emit(&packet, buffer) catch unreachable;
    return if (prng.chance(1, 8)) case.mutate(buffer, bytes.len) else bytes;
}

fn exchange(
    case: *Case,
    machine: *DhcpService,
    model: *Model,
    now_us: u64,
    datagram: []const u8,
) Violation!bool {
    const prng = &case.prng;
    const arrival: DhcpService.Arrival = .{
        .source = .{ .ip = if (prng.chance(1, 2)) .zero else poolAddress(prng), .port = 68 },
        .port = if (prng.chance(1, 8)) .pxe else .dhcp,
    };
    const ignored_before = machine.ignored.total();
    var reply_buffer: DhcpService.ReplyBuffer = undefined;
    var step = machine.receive(now_us, arrival, datagram, &reply_buffer);
    if (step == .network_boot) {
        const request = step.network_boot;
        const is_ignored = request.client.mac.eql(deviceMac(ignored_device));
        const target: DhcpService.BootTarget = if (is_ignored) .ignore else .{ .boot = .{
            .handle = .{ .value = prng.nextU64() },
            .programs = .choose(&.{ "undionly.kpxe", "ipxe.efi" }),
        } };
        step = machine.answer(now_us, &request, target, &reply_buffer);
        try expect(step != .network_boot, "an answer is no question");
        if (is_ignored) try expect(step == .ignored, "an ignored device gets no answer");
    }
    const counted: u64 = if (step == .ignored) 1 else 0;
    const ignored_count = machine.ignored.total() - ignored_before;
    try expectEqual(counted, ignored_count, "what is ignored is counted once");
    var changes: u32 = 0;
    while (machine.takeChange(now_us) != null) changes += 1;
    try expect(changes <= pools.len * pool_size, "changes to keep are bounded");
    var scratch: dhcp.Scratch = undefined;
    switch (step) {
        .network_boot => unreachable,
        .ignored, .learned => return false,
        .recorded => {
            const packet = dhcp.parse(datagram, &scratch) catch unreachable;
            model.released(now_us, &packet);
            return false;
        },
        .reply => |reply| {
            const request = dhcp.parse(datagram, &scratch) catch unreachable;
            try checkReply(machine, model, now_us, arrival, &request, &reply);
            return true;
        },
    }
}

fn checkReply(
    machine: *const DhcpService,
    model: *Model,
    now_us: u64,
    arrival: DhcpService.Arrival,
    request: *const dhcp.Packet,
    reply: *const DhcpService.Reply,
) Violation!void {
    var scratch: dhcp.Scratch = undefined;
    const packet = dhcp.parse(reply.payload, &scratch) catch
        return fuzz_case.violated("an answer can be parsed");
    try expect(packet.op == .reply, "an answer is a reply");
    try expectEqual(request.xid, packet.xid, "an answer has the request's xid");
    try expectEqual(request.chaddr, packet.chaddr, "an answer has the request's address");
    try expectEqual(request.giaddr, packet.giaddr, "an answer names the relay agent");
    const size_max = dhcp.replySizeMax(request.options.max_message_size);
    try expect(reply.payload.len <= size_max, "an answer is as short as its client wants it");
    try expect(
        reply.payload.len >= dhcp.packet_size_min,
        "an answer is as long as relay agents want it",
    );
    if (request.options.relay_agent) |value|
        try expect(
            std.mem.eql(u8, value, packet.options.relay_agent orelse ""),
            "a relay agent gets its option back",
        );
    try checkDestination(arrival, request, reply);
    if (!request.giaddr.isZero()) try expect(arrival.port == .dhcp, "port 4011 is not relayed");
    const gives = machine.options.networks[0].mode == .server and arrival.port == .dhcp;
    if (!gives) {
        try expect(packet.yiaddr.isZero(), "beside another server no address is given");
        try expect(reply.names_boot_file, "beside another server every answer names a boot file");
        return;
    }
    if (packet.options.message_type != .ack or packet.yiaddr.isZero()) return;
    const client: Client = .of(request.chaddr, request.options.client_identifier, .client_id);
    try model.granted(now_us, &client, &packet);
}

fn checkDestination(
    arrival: DhcpService.Arrival,
    request: *const dhcp.Packet,
    reply: *const DhcpService.Reply,
) Violation!void {
    if (!request.giaddr.isZero()) {
        try expect((Ip4Prefix.of(relay_ip, 24)).contains(request.giaddr) or
            (Ip4Prefix.of(server_ip, 24)).contains(
                request.giaddr,
            ), "only configured networks are relayed");
        try expectEqual(request.giaddr, reply.destination.ip, "an answer goes to the relay agent");
        return expectEqual(
            @as(u16, 67),
            reply.destination.port,
            "an answer goes to the relay agent's port",
        );
    }
    const is_inform = request.options.message_type == .inform;
    const want_ip: Ip4 = if (!arrival.source.ip.isZero())
        arrival.source.ip
    else if (is_inform and request.ciaddr.isUnicast()) request.ciaddr else .broadcast;
    try expectEqual(want_ip, reply.destination.ip, "an answer goes where the request came from");
    const want_port = arrival.source.port;
    try expectEqual(want_port, reply.destination.port, "an answer goes to the port it came from");
}

fn deviceMac(number: u32) Mac {
    return .fromInt(0x02bf00000000 + @as(u48, number));
}

/// Includes addresses a little outside of both pools.
fn poolAddress(prng: *base.Prng) Ip4 {
    const pool = pools[@intCast(prng.below(pools.len))];
    return .fromInt(pool.first.toInt() - 1 + @as(u32, @intCast(prng.below(pool_size + 2))));
}
