//! Fuzzes Wake-on-LAN magic packets.

const base = @import("base");
const wake_on_lan = @import("wire").wake_on_lan;
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;

pub fn parser(case: *Case) Violation!bool {
    var buffer: [wake_on_lan.packet_size + 16]u8 = undefined;
    const payload = makePayload(case, &buffer);
    const mac = wake_on_lan.parse(payload) catch return false;
    const again = wake_on_lan.parse(&wake_on_lan.emit(mac)) catch
        return fuzz_case.violated("an emitted packet is parsed");
    try expect(again.eql(mac), "parse(emit(x)) == x");
    return true;
}

fn makePayload(case: *Case, buffer: []u8) []u8 {
    if (case.prng.chance(1, 8)) return case.garbage(buffer);
    const packet = wake_on_lan.emit(.fromInt(@truncate(case.prng.nextU64())));
    buffer[0..packet.len].* = packet;
    return if (case.prng.chance(1, 4)) buffer[0..packet.len] else case.mutate(buffer, packet.len);
}
