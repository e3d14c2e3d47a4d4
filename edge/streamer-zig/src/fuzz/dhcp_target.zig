//! DHCP: the parser alone, and the service under a model of which device holds which address.

const std = @import("std");
const base = @import("base");
const dhcp = @import("wire").dhcp;
const DhcpService = @import("core").DhcpService;
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;
const expectEqual = fuzz_case.expectEqual;
const Ip4 = base.Ip4;
const Mac = base.Mac;

/// More than a packet may have, so that too long ones are made as well.
const buffer_size = dhcp.packet_size_max + 200;

/// Room for the variable parts of a made packet.
const Texts = struct { parts: [10][300]u8 = undefined };

pub fn parser(case: *Case) Violation!bool {
    var buffer: [buffer_size]u8 = undefined;
    const payload = try makePayload(case, &buffer);
    var scratch: dhcp.Scratch = undefined;
    const packet = dhcp.parse(payload, &scratch) catch return false;
    try expect(packet.file.len <= dhcp.file_size_max, "a file name fits its field");
    try expect(packet.sname.len <= dhcp.sname_size_max, "a server name fits its field");
    _ = packet.options.userClassText();
    _ = packet.bootFileName();
    try survives(&packet);
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
    // Options out of `file` and `sname` are emitted in the option part and may make it too long.
    if (bytes.len > dhcp.packet_size_max) return;
    var scratch: dhcp.Scratch = undefined;
    const again = dhcp.parse(bytes, &scratch) catch
        return fuzz_case.violated("an emitted packet is parsed");
    try expectEqual(packet.*, again, "parse(emit(x)) == x");
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
    };
    return packet;
}

fn makeIps(case: *Case, room: *[300]u8) []const Ip4 {
    const count: usize = @intCast(case.prng.below(4));
    case.prng.fill(room[0 .. count * 4]);
    return @ptrCast(room[0 .. count * 4]);
}

const server_ip: Ip4 = .init(10, 0, 0, 1);
const pool_first: Ip4 = .init(10, 0, 0, 1);
const pool_size = 5;
const device_count = 7;
const packets_per_case = 32;
const lease_time_s = 60;
const second = std.time.us_per_s;
/// This device is not to be booted.
const ignored_device = device_count - 1;
const addresses_max = 3;

/// What the devices were told about the addresses of the pool.
const Model = struct {
    holders: [pool_size]?struct { mac: Mac, until_us: u64 } = @splat(null),

    fn granted(model: *Model, now_us: u64, mac: Mac, ip: Ip4) Violation!void {
        const index = ip.toInt() -% pool_first.toInt();
        try expect(index < pool_size, "an address is of the pool");
        try expect(!ip.eql(server_ip), "the server's own address is not given away");
        if (model.holders[index]) |holder| {
            const is_other = !holder.mac.eql(mac) and holder.until_us > now_us;
            try expect(!is_other, "no address has two devices whose leases run");
        }
        model.drop(mac);
        model.holders[index] = .{ .mac = mac, .until_us = now_us + lease_time_s * second };
    }

    fn drop(model: *Model, mac: Mac) void {
        for (&model.holders) |*holder| {
            const known = holder.* orelse continue;
            if (known.mac.eql(mac)) holder.* = null;
        }
    }
};

pub fn service(case: *Case) Violation!bool {
    const prng = &case.prng;
    const mode: DhcpService.Mode = if (prng.chance(1, 2)) .proxy else .server;
    var machine = DhcpService.init(case.gpa, .{
        .links = &.{.{ .ip = server_ip }},
        .networks = &.{.{
            .subnet = .of(server_ip, 24),
            .mode = mode,
            .link = 0,
            .pools = &.{.{
                .first = pool_first,
                .last = .fromInt(pool_first.toInt() + pool_size - 1),
            }},
            .routers = &.{server_ip},
            .lease_time_s = lease_time_s,
        }},
        .http_port = 65535,
        .addresses_max = addresses_max,
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
        try expect(machine.book.count <= addresses_max, "the address book is bounded");
    }
    return is_answered;
}

/// A packet of one of a few devices, now and then damaged.
fn makeRequest(case: *Case, buffer: []u8) Violation![]u8 {
    const prng = &case.prng;
    const types = [_]dhcp.MessageType{ .discover, .request, .request, .decline, .release, .inform };
    const classes = [_]?[]const u8{ "PXEClient:Arch:00007:UNDI", "PXEClient", "HTTPClient", null };
    const archs = [_]?dhcp.ClientArch{ .bios, .uefi_x64, .uefi_x64_http, .uefi_arm64, null };
    const packet: dhcp.Packet = .{
        .op = .request,
        .xid = prng.nextU32(),
        .broadcast = prng.chance(1, 2),
        .ciaddr = if (prng.chance(1, 3)) poolAddress(prng) else .zero,
        .chaddr = deviceMac(@intCast(prng.below(device_count))),
        .options = .{
            .message_type = prng.pick(dhcp.MessageType, &types),
            .requested_ip = case.maybe(poolAddress(prng)),
            .server_identifier = if (prng.chance(1, 4)) server_ip else null,
            .vendor_class = prng.pick(?[]const u8, &classes),
            .user_class = if (prng.chance(1, 4)) "iPXE" else null,
            .client_arch = prng.pick(?dhcp.ClientArch, &archs),
            .client_machine_id = case.maybe(dhcp.MachineId{ .guid = @splat(5) }),
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
        const target: DhcpService.BootTarget =
            if (is_ignored) .ignore else .{ .boot = .{
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
    var scratch: dhcp.Scratch = undefined;
    switch (step) {
        .network_boot => unreachable,
        .ignored, .learned => return false,
        .noted => {
            const packet = dhcp.parse(datagram, &scratch) catch unreachable;
            model.drop(packet.chaddr);
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
    try expect(reply.payload.len <= 400, "an answer is short");
    const is_inform = request.options.message_type == .inform;
    const want_ip: Ip4 = if (!arrival.source.ip.isZero())
        arrival.source.ip
    else if (is_inform and !request.ciaddr.isZero()) request.ciaddr else .broadcast;
    try expectEqual(want_ip, reply.destination.ip, "an answer goes where the request came from");
    const want_port = arrival.source.port;
    try expectEqual(want_port, reply.destination.port, "an answer goes to the port it came from");
    const gives = machine.options.networks[0].mode == .server and arrival.port == .dhcp;
    if (!gives) {
        try expect(packet.yiaddr.isZero(), "beside another server no address is given");
        try expect(reply.names_boot_file, "beside another server every answer names a boot file");
        return;
    }
    if (packet.options.message_type == .ack and !packet.yiaddr.isZero())
        try model.granted(now_us, packet.chaddr, packet.yiaddr);
}

fn deviceMac(number: u32) Mac {
    return .fromInt(0x02bf00000000 + @as(u48, number));
}

/// Also a little outside the pool.
fn poolAddress(prng: *base.Prng) Ip4 {
    return .fromInt(pool_first.toInt() - 1 + @as(u32, @intCast(prng.below(pool_size + 2))));
}
