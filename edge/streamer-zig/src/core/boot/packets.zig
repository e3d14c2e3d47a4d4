//! The packets around a boot that are kept with it: the last one in each direction, and the DHCP
//! offers on its segment (packages/proto/UPLINK.md, `lastPackets` and `offers`). A packet is kept
//! as a name and a number, which costs the packet loop nothing; text is made only for a report.

const std = @import("std");
const base = @import("base");
const dhcp = @import("wire").dhcp;
const assert = std.debug.assert;

const Ip4 = base.Ip4;

pub const Direction = enum { from_device, from_edge };

/// The kind of a packet; the comments say what its `number` means.
pub const Name = enum(u8) {
    dhcp_discover,
    /// The addressed server as a number; 0 if the packet names none.
    dhcp_request,
    dhcp_inform,
    dhcp_other,
    dhcp_offer,
    dhcp_ack,
    dhcp_nak,
    tftp_read_request,
    tftp_oack,
    /// Block.
    tftp_data,
    /// Block.
    tftp_ack,
    /// Code of RFC 1350.
    tftp_error,
    /// `HttpFile`.
    http_request,
    /// Status.
    http_answer,
    /// `HttpFile`.
    http_bytes,
    stream_hello,
    /// Any answer to a HELLO.
    stream_answer,
    /// Byte offset in the disk.
    stream_read,
    /// Byte offset in the disk.
    stream_bytes,
    stream_store_error,
    stream_ready,
    stream_ready_ack,
    stream_report,
    stream_report_ack,
};

pub const HttpFile = enum(u8) { other, program, script, kernel, initrd, disk, word, start };

pub const Packet = struct {
    name: Name,
    number: u64 = 0,

    pub fn http(name: Name, file: HttpFile) Packet {
        assert(name == .http_request or name == .http_bytes);
        return .{ .name = name, .number = @backingInt(file) };
    }

    /// Writes printable ASCII, at most 64 bytes.
    pub fn format(packet: Packet, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        const n = packet.number;
        switch (packet.name) {
            .dhcp_discover => try writer.writeAll("DHCP DISCOVER"),
            .dhcp_request => {
                try writer.writeAll("DHCP REQUEST");
                const server = std.math.cast(u32, n) orelse 0;
                if (server != 0) try writer.print(" to {f}", .{Ip4.fromInt(server)});
            },
            .dhcp_inform => try writer.writeAll("DHCP INFORM"),
            .dhcp_other => try writer.writeAll("DHCP DECLINE or RELEASE"),
            .dhcp_offer => try writer.writeAll("DHCP OFFER"),
            .dhcp_ack => try writer.writeAll("DHCP ACK"),
            .dhcp_nak => try writer.writeAll("DHCP NAK"),
            .tftp_read_request => try writer.writeAll("TFTP read request"),
            .tftp_oack => try writer.writeAll("TFTP OACK"),
            .tftp_data => try writer.print("TFTP DATA, block {d}", .{n}),
            .tftp_ack => try writer.print("TFTP ACK of block {d}", .{n}),
            .tftp_error => try writer.print("TFTP ERROR {d}", .{n}),
            .http_request => switch (httpFile(n)) {
                .word => try writer.writeAll("HTTP POST of its own word"),
                else => |file| try writer.print("HTTP request of {s}", .{fileText(file)}),
            },
            .http_answer => try writer.print("HTTP answer {d}", .{n}),
            .http_bytes => try writer.print("HTTP bytes of {s}", .{fileText(httpFile(n))}),
            .stream_hello => try writer.writeAll("stream HELLO"),
            .stream_answer => try writer.writeAll("stream answer to HELLO"),
            .stream_read => try writer.print("stream READ at byte {d}", .{n}),
            .stream_bytes => try writer.print("stream DATA at byte {d}", .{n}),
            .stream_store_error => try writer.writeAll("stream STORE ERROR"),
            .stream_ready => try writer.writeAll("stream READY"),
            .stream_ready_ack => try writer.writeAll("stream READY_ACK"),
            .stream_report => try writer.writeAll("stream REPORT"),
            .stream_report_ack => try writer.writeAll("stream REPORT_ACK"),
        }
    }

    fn httpFile(number: u64) HttpFile {
        const byte = std.math.cast(u8, number) orelse return .other;
        return std.enums.fromInt(HttpFile, byte) orelse .other;
    }

    fn fileText(file: HttpFile) []const u8 {
        return switch (file) {
            .other => "a file",
            .program => "the boot program",
            .script => "the boot script",
            .kernel => "the kernel",
            .initrd => "the initramfs",
            .disk => "the disk",
            .word => "a word",
            .start => "the last file before the kernel",
        };
    }
};

/// Names a TFTP packet by its first four bytes (RFC 1350); null if they are no TFTP packet.
pub fn ofTftp(bytes: []const u8) ?Packet {
    if (bytes.len < 4) return null;
    const number = std.mem.readInt(u16, bytes[2..4], .big);
    return switch (std.mem.readInt(u16, bytes[0..2], .big)) {
        1 => .{ .name = .tftp_read_request },
        3 => .{ .name = .tftp_data, .number = number },
        4 => .{ .name = .tftp_ack, .number = number },
        5 => .{ .name = .tftp_error, .number = number },
        6 => .{ .name = .tftp_oack },
        else => null,
    };
}

pub const packet_text_size_max = 64;

/// A packet of this boot; `at_us` since the boot's start.
pub const PacketRecord = struct { at_us: u64, packet: Packet };

pub const LastPackets = struct {
    from_device: ?PacketRecord = null,
    from_edge: ?PacketRecord = null,

    pub fn record(last: *LastPackets, direction: Direction, at_us: u64, packet: Packet) void {
        const slot = switch (direction) {
            .from_device => &last.from_device,
            .from_edge => &last.from_edge,
        };
        slot.* = .{ .at_us = at_us, .packet = packet };
    }
};

/// `address` assigns an address, `proxy` only names a boot program, `both` does both.
pub const OfferKind = enum { address, proxy, both };

/// One DHCP offer, or an answer of the same meaning, seen for the device.
pub const Offer = struct {
    at_us: u64 = 0,
    server: Ip4,
    ours: bool,
    kind: OfferKind,
    your_ip: ?Ip4 = null,
    next_server: ?Ip4 = null,
    relay: ?Ip4 = null,
    file: base.UntrustedText = .empty,
    vendor_class: base.UntrustedText = .empty,

    /// Returns null for a packet that offers nothing. `source` is the packet's source address, for
    /// servers that do not identify themselves.
    pub fn of(packet: *const dhcp.Packet, source: Ip4, ours: bool) ?Offer {
        const message_type = packet.options.message_type orelse return null;
        if (packet.op != .reply or (message_type != .offer and message_type != .ack)) return null;
        var offer: Offer = .{
            .server = packet.options.server_identifier orelse source,
            .ours = ours,
            .kind = .proxy,
            .your_ip = known(packet.yiaddr),
            .next_server = known(packet.siaddr),
            .relay = known(packet.giaddr),
            .file = .init(packet.bootFileName() orelse ""),
            .vendor_class = .init(packet.options.vendor_class orelse ""),
        };
        if (offer.your_ip != null) offer.kind = if (offer.boots()) .both else .address;
        return offer;
    }

    /// Tells whether the offer names something to boot: a file, or the class of a boot server.
    pub fn boots(offer: *const Offer) bool {
        if (offer.file.size > 0) return true;
        const class = offer.vendor_class.slice();
        return std.mem.startsWith(u8, class, "PXEClient") or
            std.mem.startsWith(u8, class, "HTTPClient");
    }

    /// Servers retransmit offers; one entry is enough.
    fn isSameOffer(a: *const Offer, b: *const Offer) bool {
        return a.server.eql(b.server) and a.ours == b.ours and a.kind == b.kind and
            std.meta.eql(a.your_ip, b.your_ip) and std.meta.eql(a.next_server, b.next_server) and
            std.meta.eql(a.relay, b.relay) and a.file.eql(&b.file) and
            a.vendor_class.eql(&b.vendor_class);
    }

    fn known(ip: Ip4) ?Ip4 {
        return if (ip.isZero()) null else ip;
    }
};

pub const offers_max = 8;

/// The first distinct offers of a boot, in order of time.
pub const Offers = struct {
    slots: [offers_max]?Offer = @splat(null),

    pub fn count(offers: *const Offers) u8 {
        for (offers.slots, 0..) |slot, index| if (slot == null) return @intCast(index);
        return offers_max;
    }

    /// Returns false if nothing changed.
    pub fn add(offers: *Offers, offer: Offer) bool {
        for (&offers.slots) |*slot| {
            if (slot.*) |*earlier| {
                if (earlier.isSameOffer(&offer)) return false;
                continue;
            }
            slot.* = offer;
            return true;
        }
        return false;
    }

    pub fn hasServer(offers: *const Offers, server: Ip4) bool {
        for (&offers.slots) |*slot| if (slot.*) |*offer| if (offer.server.eql(server)) return true;
        return false;
    }

    pub fn hasOurs(offers: *const Offers) bool {
        for (&offers.slots) |*slot| if (slot.*) |*offer| if (offer.ours) return true;
        return false;
    }

    /// Returns the first offer of another server that names something to boot.
    pub fn otherBootOffer(offers: *const Offers) ?*const Offer {
        for (&offers.slots) |*slot| if (slot.*) |*offer| {
            if (!offer.ours and offer.boots()) return offer;
        };
        return null;
    }

    /// Counts the offers that rank above the one at `index`: those that boot before those that do
    /// not, early ones before late ones.
    pub fn rank(offers: *const Offers, index: usize) usize {
        const offer = &offers.slots[index].?;
        var better: usize = 0;
        for (&offers.slots, 0..) |*slot, at| {
            const other = if (slot.*) |*value| value else continue;
            better += @intFromBool(
                if (other.boots() != offer.boots()) other.boots() else at < index,
            );
        }
        return better;
    }
};

const testing = std.testing;

test "a packet's text is at most 64 printable bytes" {
    var buffer: [packet_text_size_max]u8 = undefined;
    const cases = [_]struct { Packet, []const u8 }{
        .{
            .{ .name = .dhcp_request, .number = Ip4.init(10, 0, 0, 2).toInt() },
            "DHCP REQUEST to 10.0.0.2",
        },
        .{ .{ .name = .dhcp_request }, "DHCP REQUEST" },
        .{ .{ .name = .dhcp_discover }, "DHCP DISCOVER" },
        .{ .{ .name = .dhcp_inform }, "DHCP INFORM" },
        .{ .{ .name = .dhcp_other }, "DHCP DECLINE or RELEASE" },
        .{ .{ .name = .dhcp_offer }, "DHCP OFFER" },
        .{ .{ .name = .dhcp_ack }, "DHCP ACK" },
        .{ .{ .name = .dhcp_nak }, "DHCP NAK" },
        .{ .{ .name = .tftp_read_request }, "TFTP read request" },
        .{ .{ .name = .tftp_oack }, "TFTP OACK" },
        .{ .{ .name = .tftp_data, .number = 7 }, "TFTP DATA, block 7" },
        .{ .{ .name = .tftp_error, .number = 8 }, "TFTP ERROR 8" },
        .{ .http(.http_request, .word), "HTTP POST of its own word" },
        .{ .{ .name = .http_answer, .number = 404 }, "HTTP answer 404" },
        .{ .{ .name = .stream_hello }, "stream HELLO" },
        .{ .{ .name = .stream_answer }, "stream answer to HELLO" },
        .{ .{ .name = .stream_read, .number = 512 }, "stream READ at byte 512" },
        .{ .{ .name = .stream_bytes, .number = 512 }, "stream DATA at byte 512" },
        .{ .{ .name = .stream_store_error }, "stream STORE ERROR" },
        .{ .{ .name = .stream_ready }, "stream READY" },
        .{ .{ .name = .stream_ready_ack }, "stream READY_ACK" },
        .{ .{ .name = .stream_report }, "stream REPORT" },
        .{ .{ .name = .stream_report_ack }, "stream REPORT_ACK" },
        .{ .{ .name = .tftp_ack, .number = 145 }, "TFTP ACK of block 145" },
        .{ .http(.http_request, .kernel), "HTTP request of the kernel" },
        .{ .{ .name = .http_bytes, .number = 1 << 40 }, "HTTP bytes of a file" },
    };
    for (cases) |case|
        try testing.expectEqualStrings(case[1], try std.mem.print(&buffer, "{f}", .{case[0]}));
    for (std.enums.values(Name)) |name| {
        const text = try std.mem.print(&buffer, "{f}", .{
            Packet{ .name = name, .number = std.math.maxInt(u64) },
        });
        for (text) |byte| try testing.expect(std.ascii.isPrint(byte));
    }
}

test "a TFTP packet is named by its first bytes" {
    try testing.expectEqual(Packet{ .name = .tftp_ack, .number = 258 }, ofTftp(&.{ 0, 4, 1, 2 }).?);
    try testing.expectEqual(
        Packet{ .name = .tftp_error, .number = 8 },
        ofTftp(&.{ 0, 5, 0, 8, 'x' }).?,
    );
    for ([_][]const u8{ "", "\x00\x04\x01", "\x00\x09ab" }) |bytes|
        try testing.expectEqual(null, ofTftp(bytes));
}

fn testOffer(host: u8, file: []const u8) Offer {
    return .{
        .server = .init(10, 0, 0, host),
        .ours = host == 1,
        .kind = if (file.len > 0) .proxy else .address,
        .file = .init(file),
    };
}

test "a duplicate offer is kept once, the ninth is dropped, and one that boots ranks higher" {
    var offers: Offers = .{};
    try testing.expect(offers.add(testOffer(9, "")));
    try testing.expect(!offers.add(testOffer(9, "")));
    try testing.expectEqual(null, offers.otherBootOffer());
    try testing.expect(offers.add(testOffer(1, "ours")));
    try testing.expectEqual(null, offers.otherBootOffer());
    for (10..16) |host| try testing.expect(offers.add(testOffer(@intCast(host), "pxelinux.0")));
    try testing.expect(!offers.add(testOffer(200, "late")));
    try testing.expectEqual(offers_max, offers.count());
    try testing.expect(offers.hasOurs());
    try testing.expect(offers.otherBootOffer().?.server.eql(.init(10, 0, 0, 10)));
    try testing.expectEqual(7, offers.rank(0));
    try testing.expectEqual(0, offers.rank(1));
}

test "an offer assigns an address, a boot file or both, and a request is no offer" {
    var packet: dhcp.Packet = .{
        .op = .reply,
        .xid = 1,
        .chaddr = .{ .bytes = .{ 2, 0, 0, 0, 0, 1 } },
        .yiaddr = .init(10, 0, 0, 50),
        .options = .{ .message_type = .offer },
    };
    const address = Offer.of(&packet, .init(10, 0, 0, 2), false).?;
    try testing.expectEqual(.address, address.kind);
    try testing.expect(address.server.eql(.init(10, 0, 0, 2)));
    packet.file = "pxelinux.0";
    try testing.expectEqual(.both, Offer.of(&packet, .zero, false).?.kind);
    packet.yiaddr = .zero;
    packet.options.server_identifier = .init(10, 0, 0, 3);
    const proxy = Offer.of(&packet, .init(10, 0, 0, 2), false).?;
    try testing.expectEqual(.proxy, proxy.kind);
    try testing.expect(proxy.server.eql(.init(10, 0, 0, 3)));
    // A server that answers a REQUEST offers the same.
    packet.options.message_type = .ack;
    try testing.expect(Offer.of(&packet, .zero, false) != null);
    packet.options.message_type = .nak;
    try testing.expectEqual(null, Offer.of(&packet, .zero, false));
    packet.options.message_type = .offer;
    packet.op = .request;
    try testing.expectEqual(null, Offer.of(&packet, .zero, false));
}

test "an offer boots by a file name of any length, or by the class of a boot server" {
    const cases = [_]struct { []const u8, []const u8, bool }{
        .{ "", "", false },
        .{ "x", "", true },
        .{ "", "PXEClient", true },
        .{ "", "HTTPClient:Arch:00016", true },
        .{ "", "MSFT 5.0", false },
    };
    for (cases) |case| {
        var offer = testOffer(9, case[0]);
        offer.vendor_class = .init(case[1]);
        try testing.expectEqual(case[2], offer.boots());
    }
}

test "the offers of a boot tell which servers made them" {
    var offers: Offers = .{};
    try testing.expect(!offers.hasOurs());
    try testing.expect(offers.add(testOffer(9, "x")));
    try testing.expect(!offers.hasOurs());
    try testing.expect(offers.hasServer(.init(10, 0, 0, 9)));
    try testing.expect(!offers.hasServer(.init(10, 0, 0, 1)));
    try testing.expect(offers.add(testOffer(1, "x")));
    try testing.expect(offers.hasOurs());
    try testing.expect(offers.hasServer(.init(10, 0, 0, 1)));
}
