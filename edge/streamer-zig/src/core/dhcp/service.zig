//! Decides the answer to one DHCP packet: proxyDHCP beside another server (ports 67 and 4011), DHCP
//! server, or off, as configured per network (RFC 2131, RFC 3046, RFC 4578, PXE 2.1). It must never
//! answer a device that the boot policy ignores, and in proxy mode never assign an address.
//! `network.zig` chooses the network of a packet, `server.zig` the address of a client, and
//! `answer.zig` builds the answer.
//!
//! How the host uses it, for each datagram of either port:
//!
//!     const arrival: DhcpService.Arrival = .{ .source = from, .port = .dhcp };
//!     const step = switch (service.receive(now_us, arrival, datagram, &reply_buffer)) {
//!         .network_boot => |request| answer: {
//!             const target = targetOf(&request.client);
//!             break :answer service.answer(now_us, &request, target, &reply_buffer);
//!         },
//!         else => |step| step,
//!     };
//!     switch (step) {
//!         .ignored => |reason| {},          // counted in service.ignored already
//!         .reply => |reply| send(reply.destination, reply.payload),  // from the same port
//!         .learned, .recorded => {},        // nothing to send
//!         .network_boot => unreachable,     // `answer` never returns it
//!     }

const std = @import("std");
const assert = std.debug.assert;
const base = @import("base");
const dhcp = @import("wire").dhcp;
const boot_client = @import("../boot/client.zig");
const dhcp_answer = @import("answer.zig");
const dhcp_network = @import("network.zig");
const dhcp_server = @import("server.zig");
const DhcpLeases = @import("leases.zig");
const Endpoint = base.Endpoint;
const Ip4 = base.Ip4;
const Mac = base.Mac;

pub const DhcpService = @This();

options: Options,
/// One per network, in server mode.
leases: []?DhcpLeases,
ignored: base.IgnoredCounters = .{},
scratch: dhcp.Scratch = undefined,

pub const BootClient = boot_client.BootClient;
pub const Programs = boot_client.Programs;
pub const Mode = dhcp_network.Mode;
pub const Network = dhcp_network.Network;
pub const Link = dhcp_network.Link;
pub const BootChoice = dhcp_answer.BootChoice;
pub const Reply = dhcp_answer.Reply;
pub const ReplyBuffer = dhcp_answer.Buffer;

/// Slices live as long as the service.
pub const Options = struct {
    /// This edge's addresses as devices reach them.
    links: []const Link,
    networks: []const Network,
    http_port: u16,
};

/// Where a datagram arrived.
pub const Arrival = struct {
    source: Endpoint,
    port: enum { dhcp, pxe },
    /// Index of the link whose interface or address it reached.
    link: u8 = 0,
};

/// A network boot that waits for the caller's decision. Valid as long as its datagram and until the
/// next `receive`.
pub const BootRequest = struct {
    client: BootClient,
    arrival: Arrival,
    /// Index of the device's network.
    network: u8,
    packet: dhcp.Packet,
};

/// The boot policy's decision on a network boot.
pub const BootTarget = union(enum) {
    /// Unknown or disabled device: it gets no answer.
    ignore,
    boot: BootChoice,
};

/// In proxy mode: a device took an address from the network's own server.
pub const AddressObservation = struct { mac: Mac, ip: Ip4, is_network_boot: bool };

pub const Step = union(enum) {
    ignored: base.IgnoreReason,
    reply: Reply,
    network_boot: BootRequest,
    learned: AddressObservation,
    /// DECLINE or RELEASE was accepted; nothing to send.
    recorded,
};

/// Allocates its tables, and nothing later. The networks passed `dhcp_network.problemOf`.
pub fn init(gpa: std.mem.Allocator, options: Options) error{OutOfMemory}!DhcpService {
    assert(dhcp_network.problemOf(options.networks, options.links.len) == null);
    for (options.links) |link| assert(link.ip.isUnicast());
    const leases = try gpa.alloc(?DhcpLeases, options.networks.len);
    @memset(leases, null);
    var service: DhcpService = .{ .options = options, .leases = leases };
    errdefer service.freeLeases(gpa);
    for (leases, options.networks) |*table, *network| {
        if (network.mode == .server) table.* = try .init(gpa, network, options.links);
    }
    return service;
}

pub fn deinit(service: *DhcpService, gpa: std.mem.Allocator) void {
    service.freeLeases(gpa);
    service.* = undefined;
}

fn freeLeases(service: *DhcpService, gpa: std.mem.Allocator) void {
    for (service.leases) |*table| if (table.*) |*leases| leases.deinit(gpa);
    gpa.free(service.leases);
}

/// Returns the leases of a network; null where no addresses are assigned.
pub fn leasesOf(service: *DhcpService, network: u8) ?*DhcpLeases {
    assert(network < service.leases.len);
    return if (service.leases[network]) |*leases| leases else null;
}

/// Returns the owner of a running lease of this address.
pub fn macOf(service: *const DhcpService, now_us: u64, ip: Ip4) ?Mac {
    for (service.leases) |*table| if (table.*) |*leases|
        if (leases.macOf(now_us, ip)) |mac| return mac;
    return null;
}

/// Returns whether an address is offered to a client that has not accepted it yet.
pub fn isOffered(service: *DhcpService, now_us: u64, ip: Ip4) bool {
    for (service.leases) |*table| if (table.*) |*leases|
        if (leases.isOffered(now_us, ip)) return true;
    return false;
}

/// Another machine answers for this address; see `DhcpLeases.findInUse`.
pub fn findInUse(service: *DhcpService, now_us: u64, ip: Ip4, holder: Mac) bool {
    for (service.leases) |*table| if (table.*) |*leases|
        if (leases.findInUse(now_us, ip, holder)) return true;
    return false;
}

/// Returns an address whose record on disk is outdated, to be written before the answer is sent;
/// null when there is none left.
pub fn takeChange(service: *DhcpService, now_us: u64) ?DhcpLeases.Record {
    for (service.leases) |*table| if (table.*) |*leases|
        if (leases.takeChange(now_us)) |record| return record;
    return null;
}

/// Takes one datagram. `now_us` is of the host's monotonic clock.
pub fn receive(
    service: *DhcpService,
    now_us: u64,
    arrival: Arrival,
    datagram: []const u8,
    reply: *ReplyBuffer,
) Step {
    assert(arrival.link < service.options.links.len);
    const packet = dhcp.parse(datagram, &service.scratch) catch |refusal|
        return service.ignore(dhcp.ignoreReason(refusal));
    if (packet.op != .request) return service.ignore(.dhcp_not_a_request);
    if (!packet.chaddr.isDevice()) return service.ignore(.dhcp_bad_client_address);
    const message_type = packet.options.message_type orelse
        return service.ignore(.dhcp_message_type);
    // An echoed option has to fit the answer.
    if (packet.options.relay_agent) |value|
        if (value.len > 255) return service.ignore(.dhcp_bad_option);
    const networks = service.options.networks;
    const chosen = dhcp_network.choose(networks, arrival.link, arrival.source, &packet);
    const query: Query = .{
        .now_us = now_us,
        .network = switch (chosen) {
            .network => |index| index,
            .ignored => |reason| return service.ignore(reason),
        },
        .message_type = message_type,
        .arrival = arrival,
        .packet = &packet,
    };
    const mode = networks[query.network].mode;
    if (mode == .off) return service.ignore(.dhcp_off);
    if (arrival.port == .pxe) return service.receivePxe(&query);
    return switch (mode) {
        .proxy => service.receiveBesideServer(&query),
        .server => service.receiveAsServer(&query, reply),
        .off => unreachable,
    };
}

/// One packet and what is known about it.
const Query = struct {
    now_us: u64,
    network: u8,
    message_type: dhcp.MessageType,
    arrival: Arrival,
    packet: *const dhcp.Packet,

    fn networkBoot(query: *const Query, client: BootClient) Step {
        return .{ .network_boot = .{
            .client = client,
            .arrival = query.arrival,
            .network = query.network,
            .packet = query.packet.*,
        } };
    }
};

/// Port 4011, both modes: the device has its address and requests only the boot file.
fn receivePxe(service: *DhcpService, query: *const Query) Step {
    assert(query.arrival.port == .pxe);
    const packet = query.packet;
    if (!packet.giaddr.isZero()) return service.ignore(.dhcp_relayed);
    switch (query.message_type) {
        .discover, .request, .inform => {},
        else => return service.ignore(.dhcp_message_type),
    }
    const client = BootClient.of(packet, query.message_type) orelse
        return service.ignore(.dhcp_not_a_network_boot);
    return query.networkBoot(client);
}

fn receiveBesideServer(service: *DhcpService, query: *const Query) Step {
    assert(query.arrival.port == .dhcp);
    assert(service.leases[query.network] == null);
    const packet = query.packet;
    const client = BootClient.of(packet, query.message_type);
    switch (query.message_type) {
        .discover => {},
        .request => {
            const server = packet.options.server_identifier orelse Ip4.zero;
            const taken = boot_client.addressOf(packet);
            if (!service.isOwn(server)) return .{ .learned = .{
                .mac = packet.chaddr,
                .ip = taken orelse return service.ignore(.dhcp_other_server),
                .is_network_boot = client != null,
            } };
        },
        else => return service.ignore(.dhcp_message_type),
    }
    return query.networkBoot(client orelse return service.ignore(.dhcp_not_a_network_boot));
}

fn receiveAsServer(service: *DhcpService, query: *const Query, reply: *ReplyBuffer) Step {
    assert(query.arrival.port == .dhcp);
    assert(service.leases[query.network] != null);
    const leases = service.leasesOf(query.network).?;
    const packet = query.packet;
    const client = dhcp_server.clientOf(leases.network, packet);
    if (packet.options.server_identifier) |id| if (!service.isOwn(id)) {
        if (query.message_type == .request) leases.dropOffer(query.now_us, &client);
        return service.ignore(.dhcp_other_server);
    };
    switch (query.message_type) {
        .discover, .request, .inform => {},
        .decline => {
            const ip = packet.options.requested_ip orelse return service.ignore(.dhcp_bad_option);
            const recorded = leases.decline(query.now_us, &client, ip);
            return if (recorded) .recorded else service.ignore(.dhcp_bad_address);
        },
        .release => {
            const recorded = leases.release(query.now_us, &client, packet.ciaddr);
            return if (recorded) .recorded else service.ignore(.dhcp_bad_address);
        },
        else => return service.ignore(.dhcp_message_type),
    }
    const boot = BootClient.of(packet, query.message_type) orelse
        return service.serve(query, null, reply);
    return query.networkBoot(boot);
}

/// Answers the request of a `network_boot` step. Never returns another one.
pub fn answer(
    service: *DhcpService,
    now_us: u64,
    request: *const BootRequest,
    target: BootTarget,
    reply: *ReplyBuffer,
) Step {
    assert(request.network < service.leases.len);
    const chosen = switch (target) {
        .ignore => return service.ignore(.dhcp_unknown_device),
        .boot => |chosen| chosen,
    };
    const query: Query = .{
        .now_us = now_us,
        .network = request.network,
        .message_type = request.client.message_type,
        .arrival = request.arrival,
        .packet = &request.packet,
    };
    const server: Endpoint = .{ .ip = service.serverIp(&query), .port = service.options.http_port };
    var file_buffer: [dhcp.file_size_max]u8 = undefined;
    const boot: dhcp_answer.Boot = .{
        .client = &request.client,
        .file = dhcp_answer.bootFile(server, &request.client, &chosen, &file_buffer),
    };
    const gives_address = service.leases[query.network] != null and query.arrival.port == .dhcp;
    if (gives_address) return service.serve(&query, boot, reply);
    if (boot.file == null) return service.ignore(.dhcp_no_boot_program);
    var out = dhcp_answer.begin(query.packet, server.ip);
    out.options.message_type = dhcp_answer.typeOf(query.message_type);
    dhcp_answer.addBoot(&out, query.packet, server.ip, boot);
    return send(&query, &out, request.client.ip, reply);
}

/// Server mode: assigns, confirms or refuses an address; a network boot gets its file with it.
fn serve(
    service: *DhcpService,
    query: *const Query,
    boot: ?dhcp_answer.Boot,
    reply: *ReplyBuffer,
) Step {
    assert(query.arrival.port == .dhcp);
    const leases = service.leasesOf(query.network).?;
    const packet = query.packet;
    const server_ip = service.serverIp(query);
    var out = dhcp_answer.begin(packet, server_ip);
    out.options.message_type = dhcp_answer.typeOf(query.message_type);
    const verdict = dhcp_server.decide(leases, query.now_us, packet);
    switch (verdict) {
        .ignored => |reason| return service.ignore(reason),
        .nak => {
            out.options.message_type = .nak;
            out.ciaddr = .zero;
            return send(query, &out, null, reply);
        },
        .give => |given| {
            out.yiaddr = given.ip;
            dhcp_server.addParameters(&out, leases, packet, given.lease_time_s);
        },
        .inform => dhcp_server.addParameters(&out, leases, packet, null),
    }
    if (boot) |known| dhcp_answer.addBoot(&out, packet, server_ip, known);
    const ip = if (verdict == .inform) boot_client.addressOf(packet) else out.yiaddr;
    return send(query, &out, ip, reply);
}

fn send(query: *const Query, out: *dhcp.Packet, ip: ?Ip4, reply: *ReplyBuffer) Step {
    return .{ .reply = dhcp_answer.finish(out, query.packet, query.arrival.source, ip, reply) };
}

/// The edge's address in the device's network; for a network behind relay agents, the one that they
/// reach.
fn serverIp(service: *const DhcpService, query: *const Query) Ip4 {
    const network = &service.options.networks[query.network];
    const link = network.link orelse network.via orelse query.arrival.link;
    return service.options.links[link].ip;
}

fn isOwn(service: *const DhcpService, ip: Ip4) bool {
    for (service.options.links) |link| if (link.ip.eql(ip)) return true;
    return false;
}

fn ignore(service: *DhcpService, reason: base.IgnoreReason) Step {
    service.ignored.add(reason);
    return .{ .ignored = reason };
}
