//! `offers` and `lastPackets` of a boot's report (packages/proto/UPLINK.md, `dhcpOffer` in
//! src/uplink-boot.ts).

const std = @import("std");
const base = @import("base");
const boot_packets = @import("packets.zig");
const number_max = @import("report_guest.zig").number_max;

const Stringify = std.json.Stringify;

/// The `kept` offers that say most, in the order of time.
pub fn writeOffers(
    json: *Stringify,
    offers: *const boot_packets.Offers,
    kept: u8,
    with_texts: bool,
) Stringify.Error!void {
    try json.objectField("offers");
    try json.beginArray();
    for (&offers.slots, 0..) |*slot, index| {
        const offer = if (slot.*) |*value| value else break;
        if (offers.rank(index) >= kept) continue;
        try json.beginObject();
        try field(json, "atUs", @min(offer.at_us, number_max));
        try field(json, "server", offer.server);
        try field(json, "ours", offer.ours);
        try field(json, "kind", @tagName(offer.kind));
        if (offer.your_ip) |ip| try field(json, "yourIp", ip);
        if (offer.next_server) |ip| try field(json, "nextServer", ip);
        if (offer.relay) |ip| try field(json, "relay", ip);
        if (with_texts and offer.file.size > 0) try field(json, "file", offer.file.slice());
        if (with_texts and offer.vendor_class.size > 0)
            try field(json, "vendorClass", offer.vendor_class.slice());
        try json.endObject();
    }
    try json.endArray();
}

/// Writes nothing where no packet was noted.
pub fn writeLastPackets(json: *Stringify, last: *const boot_packets.LastPackets) Stringify.Error!void {
    if (last.from_device == null and last.from_edge == null) return;
    try json.objectField("lastPackets");
    try json.beginObject();
    if (last.from_device) |noted| try writeNoted(json, "fromDevice", noted);
    if (last.from_edge) |noted| try writeNoted(json, "fromEdge", noted);
    try json.endObject();
}

fn writeNoted(json: *Stringify, name: []const u8, noted: boot_packets.PacketRecord) Stringify.Error!void {
    var buffer: [boot_packets.packet_text_size_max]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    noted.packet.format(&writer) catch {};
    try json.objectField(name);
    try json.beginObject();
    try field(json, "atUs", @min(noted.at_us, number_max));
    try field(json, "what", writer.buffered());
    try json.endObject();
}

fn field(json: *Stringify, name: []const u8, value: anytype) Stringify.Error!void {
    try json.objectField(name);
    try json.write(value);
}
