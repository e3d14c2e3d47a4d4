//! How an answer to a DHCP packet looks, and where it goes: what real firmware takes (RFC 2131
//! section 4.1, PXE 2.1, RFC 4578), to the port that the question came from or to its relay agent.
//! It decides nothing about addresses.

const std = @import("std");
const assert = std.debug.assert;
const base = @import("base");
const dhcp = @import("wire").dhcp;
const boot_client = @import("../boot/client.zig");
const boot_handle = @import("../boot/handle.zig");
const Endpoint = base.Endpoint;
const Ip4 = base.Ip4;
const Mac = base.Mac;
const BootClient = boot_client.BootClient;
const Programs = boot_client.Programs;

pub const Buffer = [dhcp.packet_size_max]u8;

pub const Reply = struct {
    destination: Endpoint,
    /// Points into the reply buffer.
    payload: []const u8,
    message_type: dhcp.MessageType,
    mac: Mac,
    /// The edge's own address in this answer.
    server_ip: Ip4,
    /// The device's address: the one given here, or the one it has.
    ip: ?Ip4,
    /// False for plain clients, NAK, and where no program fits the architecture (server mode).
    names_boot_file: bool,
};

/// A network boot's client and the file it is to load; null where no program fits.
pub const Boot = struct { client: *const BootClient, file: ?[]const u8 };

/// The boot that an answer belongs to, and what its device may load first.
pub const Chosen = struct {
    handle: boot_handle.BootHandle,
    /// Of the device's boot program set; none of them where the edge has no such set.
    programs: Programs,
    /// iPXE is told to load one of them too, instead of its script.
    ipxe_takes_program: bool = false,
};

/// An answer without options but the server's identifier. A relay agent's option comes back as it
/// was (RFC 3046 section 2.2).
pub fn begin(packet: *const dhcp.Packet, server_ip: Ip4) dhcp.Packet {
    return .{
        .op = .reply,
        .xid = packet.xid,
        .broadcast = packet.broadcast,
        .ciaddr = packet.ciaddr,
        .giaddr = packet.giaddr,
        .chaddr = packet.chaddr,
        .options = .{
            .server_identifier = server_ip,
            .relay_agent = packet.options.relay_agent,
            // RFC 3011 section 2: who honours it says so.
            .subnet_selection = packet.options.subnet_selection,
        },
    };
}

pub fn typeOf(message_type: dhcp.MessageType) dhcp.MessageType {
    return switch (message_type) {
        .discover => .offer,
        .request, .inform => .ack,
        else => unreachable,
    };
}

/// PXE_DISCOVERY_CONTROL (6), one byte, 8: take the file of this offer and ask no boot server.
/// Without it OVMF asks again on 4011. 255 ends the list.
const pxe_discovery_control = [_]u8{ 6, 1, 8, 255 };

/// Firmware ignores offers without option 60, and old iPXE ones whose siaddr is 0.
pub fn addBoot(
    out: *dhcp.Packet,
    packet: *const dhcp.Packet,
    server_ip: Ip4,
    boot: Boot,
) void {
    out.options.vendor_class = switch (boot.client.loader) {
        .pxe, .ipxe => boot_client.pxe_class,
        .http => boot_client.http_class,
    };
    out.options.client_machine_id = packet.options.client_machine_id;
    out.siaddr = server_ip;
    const file = boot.file orelse return;
    out.options.vendor_specific = &pxe_discovery_control;
    out.file = file;
}

/// Writes the answer. `source` is where the question came from.
pub fn finish(
    out: *dhcp.Packet,
    packet: *const dhcp.Packet,
    source: Endpoint,
    ip: ?Ip4,
    buffer: *Buffer,
) Reply {
    // A relay agent sends what carries no address to nobody in particular only if it may broadcast:
    // a proxy's offer, and a NAK (RFC 2131 section 4.3.2).
    if (!packet.giaddr.isZero() and out.yiaddr.isZero() and out.ciaddr.isZero()) out.broadcast = true;
    const size_max = dhcp.replySizeMax(packet.options.max_message_size);
    const payload = dhcp.emitWithin(out, size_max, buffer) catch unreachable;
    assert(payload.len <= size_max);
    return .{
        .destination = destinationOf(packet, source),
        .payload = payload,
        .message_type = out.options.message_type.?,
        .mac = out.chaddr,
        .server_ip = out.options.server_identifier.?,
        .ip = ip,
        .names_boot_file = out.file.len > 0,
    };
}

/// RFC 2131 section 4.1: to the relay agent, else to the client's own address, else to everybody. A
/// client that has none yet cannot be sent to by anything else without touching the kernel's table of
/// neighbours, and the RFC allows it.
fn destinationOf(packet: *const dhcp.Packet, source: Endpoint) Endpoint {
    if (!packet.giaddr.isZero()) return .{ .ip = packet.giaddr, .port = dhcp.server_port };
    if (!source.ip.isZero()) return source;
    const is_inform = packet.options.message_type == .inform;
    if (is_inform and packet.ciaddr.isUnicast()) return .{ .ip = packet.ciaddr, .port = source.port };
    return .{ .ip = .broadcast, .port = source.port };
}

/// The path or URL for this client; null where no published program fits its architecture.
pub fn bootFile(
    server: Endpoint,
    client: *const BootClient,
    chosen: *const Chosen,
    buffer: *[dhcp.file_size_max]u8,
) ?[]const u8 {
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
