//! The facts that a boot medium puts into the address of its boot script:
//! `?from=media&platform=efi&uuid=4c4c4544-...`. Such a boot has no DHCP request with these facts.
//! The words are iPXE's own (its settings `platform` and `uuid`); anything else is ignored.

const std = @import("std");
const base = @import("base");
const wire = @import("wire");
const boot_module = @import("../boot/boot.zig");

const ClientArch = wire.dhcp.ClientArch;

/// The user class of a boot that started from a boot medium.
pub const user_class = "bootfarm-media";

pub const MediaQuery = struct {
    client_arch: ?u16 = null,
    machine_id: ?base.Uuid = null,

    /// `text` is the query; null if it is not a boot medium's.
    pub fn parse(text: []const u8) ?MediaQuery {
        var is_media = false;
        var query: MediaQuery = .{};
        var words = std.mem.splitScalar(u8, text, '&');
        while (words.next()) |word| {
            const name, const value = std.mem.cutScalar(u8, word, '=') orelse continue;
            if (std.mem.eql(u8, name, "from")) is_media = std.mem.eql(u8, value, "media");
            if (std.mem.eql(u8, name, "uuid")) query.machine_id = machineOf(value);
            if (std.mem.eql(u8, name, "platform")) query.client_arch = archOf(value);
        }
        return if (is_media) query else null;
    }

    /// A boot that did start with DHCP keeps the facts that its firmware sent there.
    pub fn tell(query: *const MediaQuery, facts: *boot_module.Facts) void {
        if (facts.user_class.slice().len > 0 or facts.client_arch != null) return;
        facts.user_class = .init(user_class);
        facts.client_arch = query.client_arch;
        facts.machine_id = query.machine_id;
    }
};

/// Null also for the fillers of boards that have none.
fn machineOf(text: []const u8) ?base.Uuid {
    const id = base.Uuid.parse(text) catch return null;
    for ([_]u8{ 0, 0xff }) |filler| {
        if (id.eql(.fromBytes(@splat(filler)))) return null;
    }
    return id;
}

/// Boot media exist for x86 only.
fn archOf(platform: []const u8) ?u16 {
    if (std.mem.eql(u8, platform, "pcbios")) return @backingInt(ClientArch.bios);
    if (std.mem.eql(u8, platform, "efi")) return @backingInt(ClientArch.uefi_x64);
    return null;
}

const testing = std.testing;

test "a boot medium's words become facts of the boot" {
    const id = "4c4c4544-0042-3510-8052-b4c04f565431";
    const query = MediaQuery.parse("from=media&platform=efi&uuid=" ++ id).?;
    var facts: boot_module.Facts = .{};
    query.tell(&facts);
    try testing.expectEqualStrings("bootfarm-media", facts.user_class.slice());
    try testing.expectEqual(7, facts.client_arch);
    try testing.expectEqualStrings(id, &facts.machine_id.?.toText());
}

test "facts from DHCP are kept, and unknown words are ignored" {
    var facts: boot_module.Facts = .{ .client_arch = 0, .user_class = .init("iPXE") };
    const filler = "uuid=00000000-0000-0000-0000-000000000000";
    const query = MediaQuery.parse(filler ++ "&platform=riscv&from=media&x&y=1").?;
    try testing.expectEqual(MediaQuery{}, query);
    query.tell(&facts);
    try testing.expectEqualStrings("iPXE", facts.user_class.slice());
    for ([_][]const u8{ "", "from=disk", "from", "platform=efi", "from=media&from=x" }) |other|
        try testing.expectEqual(null, MediaQuery.parse(other));
}
