//! Decides the answer to one DHCP packet: proxyDHCP beside another server (ports 67 and 4011), DHCP
//! server, or off. RFC 2131, RFC 4578, PXE 2.1; the proxy offer is the one that real firmware
//! takes. It must never answer a device that the boot policy ignores, and in proxy mode never give
//! an address.
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
//!         .learned, .noted => {},           // nothing to send
//!         .network_boot => unreachable,     // `answer` never returns it
//!     }

const std = @import("std");
const assert = std.debug.assert;
const base = @import("base");
const dhcp = @import("wire").dhcp;
const boot_client = @import("boot_client.zig");
const boot_handle = @import("boot_handle.zig");
const AddressBook = @import("address_book.zig");
const DhcpLeases = @import("dhcp_leases.zig");
const Endpoint = base.Endpoint;
const Ip4 = base.Ip4;
const Mac = base.Mac;

pub const DhcpService = @This();

options: Options,
/// Server mode only.
leases: ?DhcpLeases,
book: AddressBook,
ignored: base.IgnoredCounters = .{},
scratch: dhcp.Scratch = undefined,

pub const BootClient = boot_client.BootClient;
pub const Programs = boot_client.Programs;

pub const ReplyBuffer = [dhcp.packet_size_max]u8;

pub const Mode = enum { proxy, server, off };

pub const Options = struct {
    mode: Mode,
    /// This edge's address as devices reach it.
    server_ip: Ip4,
    http_port: u16,
    /// Server mode: the addresses to give.
    pool: ?Pool = null,
    /// Devices whose address is remembered in proxy mode.
    addresses_max: u32 = 4096,
};

pub const Pool = struct {
    first: Ip4,
    last: Ip4,
    subnet_mask: Ip4 = .init(255, 255, 255, 0),
    router: ?Ip4 = null,
    dns_server: ?Ip4 = null,
    lease_time_s: u32 = 3600,
};

/// Where a datagram came in.
pub const Arrival = struct {
    source: Endpoint,
    port: enum { dhcp, pxe },
};

/// A network boot that waits for the caller's decision. Valid as long as its datagram and until the
/// next `receive`.
pub const BootRequest = struct {
    client: BootClient,
    arrival: Arrival,
    packet: dhcp.Packet,
};

/// What the boot policy says to a network boot.
pub const BootTarget = union(enum) {
    /// Unknown or disabled device: it gets no answer.
    ignore,
    boot: Chosen,
};

/// The boot that an answer belongs to, and what its device may load first.
pub const Chosen = struct {
    handle: boot_handle.BootHandle,
    /// Of the device's boot program set; none of them where the edge has no such set.
    programs: Programs,
    /// iPXE is told to load one of them too, instead of its script.
    ipxe_takes_program: bool = false,
};

pub const Reply = struct {
    destination: Endpoint,
    /// Points into the reply buffer.
    payload: []const u8,
    message_type: dhcp.MessageType,
    mac: Mac,
    /// The device's address: the one given here, or the one it has.
    ip: ?Ip4,
    /// False for plain clients, NAK, and where no program fits the architecture (server mode).
    names_boot_file: bool,
};

/// In proxy mode a device took an address from the network's own server.
pub const Learned = struct { mac: Mac, ip: Ip4, is_network_boot: bool };

pub const Step = union(enum) {
    ignored: base.IgnoreReason,
    reply: Reply,
    network_boot: BootRequest,
    learned: Learned,
    /// DECLINE or RELEASE was taken; nothing to send.
    noted,
};

pub const InitError = error{ OutOfMemory, BadPool };

/// Allocates its tables, and nothing later. BadPool: see `DhcpLeases.init`; also server mode
/// without a pool.
pub fn init(gpa: std.mem.Allocator, options: Options) InitError!DhcpService {
    assert(options.server_ip.isUnicast());
    var leases: ?DhcpLeases = null;
    if (options.mode == .server) {
        const pool = options.pool orelse return error.BadPool;
        leases = try .init(gpa, .{
            .first = pool.first,
            .last = pool.last,
            .server_ip = options.server_ip,
            .lease_time_s = pool.lease_time_s,
        });
    }
    errdefer if (leases) |*table| table.deinit(gpa);
    return .{
        .options = options,
        .leases = leases,
        .book = try .init(gpa, options.addresses_max),
    };
}

pub fn deinit(service: *DhcpService, gpa: std.mem.Allocator) void {
    if (service.leases) |*leases| leases.deinit(gpa);
    service.book.deinit(gpa);
    service.* = undefined;
}

/// Whose address this is, as far as DHCP showed it.
pub fn macOf(service: *const DhcpService, now_us: u64, ip: Ip4) ?Mac {
    if (service.leases) |*leases| if (leases.macOf(now_us, ip)) |mac| return mac;
    return service.book.macOf(ip);
}

/// One datagram. `now_us` is of the host's monotonic clock.
pub fn receive(
    service: *DhcpService,
    now_us: u64,
    arrival: Arrival,
    datagram: []const u8,
    reply: *ReplyBuffer,
) Step {
    if (service.options.mode == .off) return service.ignore(.dhcp_off);
    const packet = dhcp.parse(datagram, &service.scratch) catch |refusal|
        return service.ignore(dhcp.ignoreReason(refusal));
    if (packet.op != .request) return service.ignore(.dhcp_not_a_request);
    if (!packet.chaddr.isDevice()) return service.ignore(.dhcp_bad_client_address);
    if (!packet.giaddr.isZero()) return service.ignore(.dhcp_relayed);
    const message_type = packet.options.message_type orelse
        return service.ignore(.dhcp_message_type);
    if (arrival.port == .pxe) {
        return service.receivePxe(now_us, message_type, arrival, &packet);
    }
    return switch (service.options.mode) {
        .proxy => service.receiveBesideServer(now_us, message_type, arrival, &packet),
        .server => service.receiveAsServer(now_us, message_type, arrival, &packet, reply),
        .off => unreachable,
    };
}

/// Port 4011, both modes: the device has its address and asks only for the boot file.
fn receivePxe(
    service: *DhcpService,
    now_us: u64,
    message_type: dhcp.MessageType,
    arrival: Arrival,
    packet: *const dhcp.Packet,
) Step {
    switch (message_type) {
        .discover, .request, .inform => {},
        else => return service.ignore(.dhcp_message_type),
    }
    const client = BootClient.of(packet, message_type) orelse
        return service.ignore(.dhcp_not_a_network_boot);
    if (service.options.mode == .proxy and packet.ciaddr.isUnicast())
        service.book.learn(now_us, packet.chaddr, packet.ciaddr);
    return .{ .network_boot = .{ .client = client, .arrival = arrival, .packet = packet.* } };
}

fn receiveBesideServer(
    service: *DhcpService,
    now_us: u64,
    message_type: dhcp.MessageType,
    arrival: Arrival,
    packet: *const dhcp.Packet,
) Step {
    const client = BootClient.of(packet, message_type);
    switch (message_type) {
        .discover => {},
        .request => {
            const server = packet.options.server_identifier orelse Ip4.zero;
            const to_us = server.eql(service.options.server_ip);
            const taken = boot_client.addressOf(packet);
            if (taken) |ip| service.book.learn(now_us, packet.chaddr, ip);
            if (!to_us) return .{ .learned = .{
                .mac = packet.chaddr,
                .ip = taken orelse return service.ignore(.dhcp_other_server),
                .is_network_boot = client != null,
            } };
        },
        else => return service.ignore(.dhcp_message_type),
    }
    const known = client orelse return service.ignore(.dhcp_not_a_network_boot);
    return .{ .network_boot = .{ .client = known, .arrival = arrival, .packet = packet.* } };
}

fn receiveAsServer(
    service: *DhcpService,
    now_us: u64,
    message_type: dhcp.MessageType,
    arrival: Arrival,
    packet: *const dhcp.Packet,
    reply: *ReplyBuffer,
) Step {
    const leases = &service.leases.?;
    const mac = packet.chaddr;
    const options = &packet.options;
    if (options.server_identifier) |id| if (!id.eql(service.options.server_ip)) {
        if (message_type == .request) leases.dropOffer(now_us, mac);
        return service.ignore(.dhcp_other_server);
    };
    switch (message_type) {
        .discover, .request, .inform => {},
        .decline => {
            const ip = options.requested_ip orelse return service.ignore(.dhcp_bad_option);
            const noted = leases.decline(now_us, mac, ip);
            return if (noted) .noted else service.ignore(.dhcp_bad_address);
        },
        .release => {
            const noted = leases.release(now_us, mac, packet.ciaddr);
            return if (noted) .noted else service.ignore(.dhcp_bad_address);
        },
        else => return service.ignore(.dhcp_message_type),
    }
    const request: BootRequest = .{
        .client = BootClient.of(packet, message_type) orelse
            return service.serve(now_us, arrival, packet, null, reply),
        .arrival = arrival,
        .packet = packet.*,
    };
    return .{ .network_boot = request };
}

/// Answers the request of a `network_boot` step. Never returns another one.
pub fn answer(
    service: *DhcpService,
    now_us: u64,
    request: *const BootRequest,
    target: BootTarget,
    reply: *ReplyBuffer,
) Step {
    assert(service.options.mode != .off);
    const chosen = switch (target) {
        .ignore => return service.ignore(.dhcp_unknown_device),
        .boot => |chosen| chosen,
    };
    var file_buffer: [dhcp.file_size_max]u8 = undefined;
    const boot: Boot = .{
        .client = &request.client,
        .file = service.bootFile(&request.client, &chosen, &file_buffer),
    };
    const gives_address = service.options.mode == .server and request.arrival.port == .dhcp;
    if (gives_address) return service.serve(now_us, request.arrival, &request.packet, boot, reply);
    if (boot.file == null) return service.ignore(.dhcp_no_boot_program);
    var out = service.replyTo(&request.packet);
    out.options.message_type = answerType(request.client.message_type);
    service.addBoot(&out, &request.packet, boot);
    return send(&out, request.arrival, request.client.ip, reply);
}

/// A network boot's client and the file it is to load; null where no program fits.
const Boot = struct { client: *const BootClient, file: ?[]const u8 };

/// Server mode: gives, confirms or refuses an address; a network boot gets its file with it.
fn serve(
    service: *DhcpService,
    now_us: u64,
    arrival: Arrival,
    packet: *const dhcp.Packet,
    boot: ?Boot,
    reply: *ReplyBuffer,
) Step {
    const leases = &service.leases.?;
    const message_type = packet.options.message_type.?;
    const mac = packet.chaddr;
    var out = service.replyTo(packet);
    out.options.message_type = answerType(message_type);
    switch (message_type) {
        .discover => out.yiaddr = leases.offer(now_us, mac, packet.options.requested_ip) orelse
            return service.ignore(.dhcp_no_free_address),
        .request => {
            // RFC 2131 section 4.3.2: option 50 while selecting or after a restart, ciaddr while
            // renewing.
            const wanted = boot_client.addressOf(packet) orelse
                return service.ignore(.dhcp_bad_option);
            if (!leases.bind(now_us, mac, wanted)) {
                out.options.message_type = .nak;
                return send(&out, arrival, null, reply);
            }
            out.yiaddr = wanted;
        },
        .inform => {},
        else => unreachable,
    }
    const pool = &service.options.pool.?;
    if (message_type != .inform) out.options.lease_time_s = pool.lease_time_s;
    out.options.subnet_mask = pool.subnet_mask;
    if (pool.router) |*router| out.options.routers = router[0..1];
    if (pool.dns_server) |*dns_server| out.options.dns_servers = dns_server[0..1];
    if (boot) |known| service.addBoot(&out, packet, known);
    const ip = if (message_type == .inform) boot_client.addressOf(packet) else out.yiaddr;
    return send(&out, arrival, ip, reply);
}

fn replyTo(service: *const DhcpService, packet: *const dhcp.Packet) dhcp.Packet {
    return .{
        .op = .reply,
        .xid = packet.xid,
        .broadcast = packet.broadcast,
        .ciaddr = packet.ciaddr,
        .chaddr = packet.chaddr,
        .options = .{ .server_identifier = service.options.server_ip },
    };
}

/// PXE_DISCOVERY_CONTROL (6), one byte, 8: take the file of this offer and ask no boot server.
/// Without it OVMF asks again on 4011. 255 ends the list.
const pxe_discovery_control = [_]u8{ 6, 1, 8, 255 };

/// Firmware ignores offers without option 60, and old iPXE ones whose siaddr is 0.
fn addBoot(
    service: *const DhcpService,
    out: *dhcp.Packet,
    packet: *const dhcp.Packet,
    boot: Boot,
) void {
    out.options.vendor_class = switch (boot.client.loader) {
        .pxe, .ipxe => boot_client.pxe_class,
        .http => boot_client.http_class,
    };
    out.options.client_machine_id = packet.options.client_machine_id;
    out.siaddr = service.options.server_ip;
    const file = boot.file orelse return;
    out.options.vendor_specific = &pxe_discovery_control;
    out.file = file;
}

fn send(out: *const dhcp.Packet, arrival: Arrival, ip: ?Ip4, reply: *ReplyBuffer) Step {
    // Every part of an answer is bounded: 240 + file in its field + less than 100 bytes of options.
    const payload = dhcp.emit(out, reply) catch unreachable;
    const source = arrival.source;
    return .{ .reply = .{
        .destination = .{
            .ip = if (source.ip.isZero()) .broadcast else source.ip,
            .port = source.port,
        },
        .payload = payload,
        .message_type = out.options.message_type.?,
        .mac = out.chaddr,
        .ip = ip,
        .names_boot_file = out.file.len > 0,
    } };
}

fn answerType(message_type: dhcp.MessageType) dhcp.MessageType {
    return switch (message_type) {
        .discover => .offer,
        .request, .inform => .ack,
        else => unreachable,
    };
}

/// The path or URL for this client; null where no published program fits its architecture.
fn bootFile(
    service: *const DhcpService,
    client: *const BootClient,
    chosen: *const Chosen,
    buffer: *[dhcp.file_size_max]u8,
) ?[]const u8 {
    const options = &service.options;
    const server: Endpoint = .{ .ip = options.server_ip, .port = options.http_port };
    const loader: boot_client.Loader = if (chosen.ipxe_takes_program and client.loader == .ipxe)
        .pxe
    else
        client.loader;
    const name = switch (loader) {
        .ipxe => "boot.ipxe",
        .pxe, .http => chosen.programs.of(client.arch) orelse return null,
    };
    assert(name.len <= Programs.name_size_max);
    var writer: base.ByteWriter = .init(buffer);
    switch (loader) {
        .ipxe, .http => writer.print("http://{f}/", .{server}) catch unreachable,
        .pxe => {},
    }
    writer.print("b/{f}/{s}", .{ chosen.handle, name }) catch unreachable;
    return writer.written();
}

comptime {
    const url_size_max = "http:///b//".len + Endpoint.text_size_max +
        boot_handle.BootHandle.text_size + Programs.name_size_max;
    assert(url_size_max <= dhcp.file_size_max);
}

fn ignore(service: *DhcpService, reason: base.IgnoreReason) Step {
    service.ignored.add(reason);
    return .{ .ignored = reason };
}
