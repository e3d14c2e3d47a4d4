//! Fuzzes the query that boot media append to the address of their boot script.

const std = @import("std");
const core = @import("core");
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;

const queries = [_][]const u8{
    "from=media&platform=pcbios&uuid=4c4c4544-0042-3510-8052-b4c04f565431",
    "from=media&platform=efi&uuid=00000000-0000-0000-0000-000000000000",
    "platform=efi&&uuid=&=&from=media",
    "from=media&uuid=4c4c4544-0042-3510-8052-b4c04f565431&from=media",
};

pub fn parser(case: *Case) Violation!bool {
    var buffer: [256]u8 = undefined;
    const text = makeBytes(case, &buffer);
    const query = core.loader.MediaQuery.parse(text) orelse return false;
    try expect(std.mem.find(u8, text, "from=media") != null, "only boot media are taken for some");
    if (query.client_arch) |arch| try expect(arch == 0 or arch == 7, "boot media are for x86");
    var facts: core.boot.Facts = .{ .client_arch = 16 };
    query.tell(&facts);
    try expect(facts.client_arch == 16, "what DHCP said is kept");
    try expect(facts.machine_id == null, "what DHCP said is kept");
    return true;
}

fn makeBytes(case: *Case, buffer: []u8) []u8 {
    if (case.prng.chance(1, 8)) return case.garbage(buffer);
    const query = case.prng.pick([]const u8, &queries);
    @memcpy(buffer[0..query.len], query);
    return if (case.prng.chance(1, 4)) buffer[0..query.len] else case.mutate(buffer, query.len);
}
