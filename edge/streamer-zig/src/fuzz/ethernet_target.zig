//! Fuzzes frames as a listener on a segment receives them.

const base = @import("base");
const ethernet = @import("wire").ethernet;
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;

pub fn parser(case: *Case) Violation!bool {
    var buffer: [ethernet.frame_size_max]u8 = undefined;
    const frame = makeFrame(case, &buffer);
    const packet = ethernet.parse(frame) catch return false;
    const start = @intFromPtr(frame.ptr);
    const at = @intFromPtr(packet.payload.ptr);
    try expect(
        at >= start and at + packet.payload.len <= start + frame.len,
        "a payload lies within its frame",
    );
    try expect(
        packet.payload.len <= packet.payload_size,
        "a payload is no longer than its packet says",
    );
    if (packet.transport != .udp or !packet.isWhole()) return true;
    var again_buffer: [ethernet.frame_size_max]u8 = undefined;
    const emitted = ethernet.emitUdp(
        &again_buffer,
        .{ .source = packet.source_mac, .destination = packet.destination_mac },
        packet.source,
        packet.destination,
        packet.payload,
    ) catch return fuzz_case.violated("a parsed datagram fits a frame");
    const again = ethernet.parse(emitted) catch
        return fuzz_case.violated("an emitted frame is parsed");
    try expect(
        again.source.eql(packet.source) and again.destination.eql(packet.destination),
        "parse(emit(x)) == x",
    );
    try expect(again.payload_size == packet.payload_size, "parse(emit(x)) has the same size");
    return true;
}

fn makeFrame(case: *Case, buffer: []u8) []u8 {
    if (case.prng.chance(1, 8)) return case.garbage(buffer);
    var payload: [600]u8 = undefined;
    const bytes = case.garbage(&payload);
    const frame = ethernet.emitUdp(
        buffer,
        .{ .source = .fromInt(@truncate(case.prng.nextU64())), .destination = .broadcast },
        .{ .ip = .fromInt(case.prng.nextU32()), .port = @truncate(case.prng.nextU32()) },
        .{ .ip = .fromInt(case.prng.nextU32()), .port = @truncate(case.prng.nextU32()) },
        bytes,
    ) catch unreachable;
    // The headers of TCP and ICMP are in the same place.
    if (case.prng.chance(1, 4)) frame[23] = if (case.prng.chance(1, 2)) 6 else 1;
    return if (case.prng.chance(1, 4)) frame else case.mutate(buffer, frame.len);
}
