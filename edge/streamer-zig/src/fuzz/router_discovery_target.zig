//! Fuzzes messages of IPv6 router discovery.

const router_discovery = @import("wire").router_discovery;
const Case = @import("case.zig").Case;
const Violation = @import("case.zig").Violation;
const expect = @import("case.zig").expect;

pub fn parser(case: *Case) Violation!bool {
    var buffer: [96]u8 = undefined;
    const message = makeMessage(case, &buffer);
    const parsed = router_discovery.parse(message, router_discovery.hop_limit) orelse return false;
    try expect(router_discovery.parse(message, case.byte() & 0x7f) == null, "others are refused");
    switch (parsed) {
        .solicitation => {},
        .advertisement => |heard| if (heard.is_bare)
            try expect(heard.router_lifetime_s == 0, "a router that offers something is one"),
    }
    return true;
}

fn makeMessage(case: *Case, buffer: []u8) []u8 {
    if (case.prng.chance(1, 8)) return case.garbage(buffer);
    const asks = router_discovery.solicitation();
    const says = router_discovery.advertisement();
    const head: []const u8 = if (case.prng.chance(1, 2)) &asks else &says;
    @memcpy(buffer[0..head.len], head);
    var size = head.len;
    // A link address, and a prefix.
    for ([_][2]u8{ .{ 1, 1 }, .{ 3, 4 } }) |option| if (case.prng.chance(1, 2)) {
        const option_size = @as(usize, option[1]) * 8;
        @memset(buffer[size..][0..option_size], case.byte());
        buffer[size..][0..2].* = option;
        size += option_size;
    };
    return if (case.prng.chance(1, 4)) buffer[0..size] else case.mutate(buffer, size);
}
