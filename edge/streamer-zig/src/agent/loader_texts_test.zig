//! Tests of loader_texts.zig and ipxe_scripts.zig: what a loader is shown and told, and what a
//! choice from a boot menu does to the boot.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const http_response = @import("response.zig");
const TestIo = @import("io_test.zig");
const fixture = @import("agent_test.zig");
const testing = std.testing;
const Site = fixture.Site;
const uuid = fixture.uuid;
const macOf = fixture.macOf;
const LoaderTexts = @import("loader_texts.zig").LoaderTexts(TestIo);
const IpxeScripts = @import("ipxe_scripts.zig").IpxeScripts(TestIo);
const Ref = core.boot.Table.Ref;

const peer: base.Endpoint = .{ .ip = .init(10, 77, 0, 10), .port = 1000 };
const own = fixture.own;

const Loader = struct {
    site: *Site,
    texts: LoaderTexts,
    ref: Ref,
    buffer: [LoaderTexts.size_max]u8 = undefined,

    fn init(site: *Site) !Loader {
        const ref = try site.begin(1);
        site.boots.table.setAddress(site.boot(ref), peer.ip, false);
        return .{ .site = site, .texts = .{ .boots = &site.boots, .own = own }, .ref = ref };
    }

    fn boot(loader: *Loader) *core.boot.Boot {
        return loader.site.boot(loader.ref);
    }

    fn ask(loader: *Loader, name: []const u8) ?[]const u8 {
        return loader.askAs(name, true, true);
    }

    fn askAs(loader: *Loader, name: []const u8, has_handle: bool, is_confirmed: bool) ?[]const u8 {
        return loader.texts.write(&.{
            .name = name,
            .handle = if (has_handle) .{ .value = loader.boot().identity.handle } else null,
            .peer = peer,
            .is_confirmed = is_confirmed,
        }, &loader.buffer);
    }

    /// Asks for an entry of the menu as it is now.
    fn choose(loader: *Loader, entry: u8, has_handle: bool) !?[]const u8 {
        const menu = loader.site.boots.policy.menuOf(macOf(1), loader.site.io.unix_ms).?;
        var name: [64]u8 = undefined;
        const text = try std.mem.print(&name, "menu-{x:0>8}-{d}.cfg", .{ menu.mark(), entry });
        return loader.askAs(text, has_handle, true);
    }
};

fn expectPart(text: ?[]const u8, part: []const u8) !void {
    errdefer std.debug.print("{?s}\n", .{text});
    try testing.expect(std.mem.find(u8, text orelse return error.NoText, part) != null);
}

test "GRUB and PXELINUX get the configuration of the address's boot, and other names none" {
    const site: *Site = try .create();
    defer site.destroy();
    const version = site.open(1);
    version.initrd = .{};
    var loader: Loader = try .init(site);
    try expectPart(loader.askAs("grub/grub.cfg", false, true), "initrd");
    try expectPart(loader.askAs("pxelinux.cfg/default", false, true), "quiet");
    try expectPart(loader.ask("pxelinux.cfg/01-02-bf-00-00-00-01"), "INITRD");
    version.initrd = null;
    const without = loader.ask("grub.cfg").?;
    try testing.expectEqual(null, std.mem.find(u8, without, "initrd"));
    try testing.expectEqual(null, loader.ask("grub.cfg-01-02-bf-00-00-00-02"));
    try testing.expectEqual(null, loader.ask("splash.png"));
    try testing.expectEqual(null, loader.ask("other.cfg"));
    loader.site.boots.table.setAddress(loader.boot(), .init(10, 77, 0, 11), false);
    try testing.expectEqual(null, loader.askAs("grub/grub.cfg", false, true));
    // Who has the device's MAC address has its boot, at whatever address.
    site.io.neighbour_mac = macOf(1);
    try expectPart(loader.askAs("grub/grub.cfg", false, true), "quiet");
}

test "a configuration is for the machine with the device's MAC address alone" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    site.boots.trusted = &.{};
    var loader: Loader = try .init(site);
    for ([_]?base.Mac{ null, macOf(2) }) |neighbour| {
        site.io.neighbour_mac = neighbour;
        for ([_]bool{ false, true }) |has_handle| for ([_]bool{ false, true }) |is_confirmed|
            try testing.expectEqual(null, loader.askAs("grub.cfg", has_handle, is_confirmed));
    }
    try testing.expectEqual(8, site.boots.ignored.get(.device_unconfirmed));
    site.io.neighbour_mac = macOf(1);
    try expectPart(loader.ask("pxelinux.cfg/default"), "quiet");
}

test "a boot that cannot start is refused, and fails once its peer has shown its address" {
    const site: *Site = try .create();
    defer site.destroy();
    var loader: Loader = try .init(site);
    try expectPart(loader.askAs("grub.cfg", true, false), "the version is unreadable");
    try testing.expect(!loader.boot().isOver());
    try expectPart(loader.ask("pxelinux.cfg/default"), "the version is unreadable");
    try testing.expectEqual(.version_missing, loader.boot().outcome.?.failed.cause);
    try testing.expectEqual(.loader, loader.boot().outcome.?.failed.phase);
}

test "a version without a kernel is refused to a loader that cannot start its disk" {
    const site: *Site = try .create();
    defer site.destroy();
    site.open(1).kernel = null;
    var loader: Loader = try .init(site);
    try expectPart(loader.ask("grub.cfg"), "only iPXE starts its disk");
    try testing.expectEqual(.file_not_found, loader.boot().outcome.?.failed.cause);
}

test "a menu prolongs the wait of its boot, but not for an address that may be forged" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addMenu();
    var loader: Loader = try .init(site);
    try expectPart(loader.askAs("grub.cfg", false, false), "menuentry 'two");
    try testing.expectEqual(0, loader.boot().menu_wait_us);
    try expectPart(loader.ask("grub.cfg"), "menuentry 'two");
    try testing.expectEqual(30 * std.time.us_per_s, loader.boot().menu_wait_us);
    try expectPart(loader.ask("pxelinux.cfg/default"), "LABEL 2");
}

test "an entry is chosen by who knows the boot's handle, and what it starts stays" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    _ = site.open(2);
    try site.addMenu();
    var loader: Loader = try .init(site);
    try testing.expectEqual(null, try loader.choose(1, false));
    try testing.expectEqualStrings("", loader.boot().menu_entry.slice());
    try expectPart(try loader.choose(1, true), "quiet");
    try testing.expectEqualStrings("two", loader.boot().menu_entry.slice());
    try testing.expect(loader.boot().assignment.version_id.eql(uuid(2)));
    // A menu that has changed since is shown again.
    try expectPart(loader.ask("menu-00000000-0.cfg"), "menuentry");
}

test "an entry for the device's own disk ends its boot, in the words of its loader" {
    for ([_]?u16{ 0, 7 }, [_][]const u8{ "LOCALBOOT", "exit" }) |arch, word| {
        const site: *Site = try .withVersion();
        defer site.destroy();
        try site.addMenu();
        var loader: Loader = try .init(site);
        loader.boot().facts.client_arch = arch;
        try expectPart(try loader.choose(2, true), word);
        try testing.expectEqual(.local_disk, std.meta.activeTag(loader.boot().outcome.?));
        // The answer was lost.
        try expectPart(try loader.choose(2, true), word);
        loader.boot().outcome = .superseded;
        try testing.expectEqual(null, try loader.choose(2, true));
    }
}

const Ipxe = struct {
    site: *Site,
    text: [http_response.text_size_max]u8 = undefined,

    fn ask(ipxe: *Ipxe, ref: Ref, query: []const u8) ?[]const u8 {
        const scripts: IpxeScripts = .{ .boots = &ipxe.site.boots, .own = &own };
        const asked: IpxeScripts.ScriptRequest = .{ .ref = ref, .query = query, .peer = peer.ip };
        const response = scripts.answer(asked, &ipxe.text) orelse return null;
        return ipxe.text[0..response.body.text];
    }

    fn choose(ipxe: *Ipxe, ref: Ref, entry: u8) !?[]const u8 {
        const menu = ipxe.site.boots.policy.menuOf(macOf(1), ipxe.site.io.unix_ms).?;
        const answer: core.loader.menu.Answer = .{ .mark = menu.mark(), .entry = entry };
        var query: [64]u8 = undefined;
        return ipxe.ask(ref, try std.mem.print(&query, "{f}", .{answer}));
    }
};

test "iPXE shows the menu, then starts what was chosen" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    _ = site.open(2);
    try site.addMenu();
    var ipxe: Ipxe = .{ .site = site };
    const ref = try site.begin(1);
    try expectPart(ipxe.ask(ref, ""), "choose what to start");
    try testing.expectEqual(30 * std.time.us_per_s, site.boot(ref).menu_wait_us);
    try expectPart(ipxe.ask(ref, "menu=00000000&entry=1"), "the menu has changed, choose again");
    try testing.expectEqualStrings("", site.boot(ref).menu_entry.slice());
    try expectPart(try ipxe.choose(ref, 1), "quiet");
    try testing.expect(site.boot(ref).assignment.version_id.eql(uuid(2)));
    const gone: Ref = .{ .index = ref.index, .generation = ref.generation +% 1 };
    try testing.expectEqual(null, ipxe.ask(gone, ""));
}

test "a choice after the boot's end begins another boot, and the device's own disk is left twice" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addMenu();
    var ipxe: Ipxe = .{ .site = site };
    const first = try site.begin(1);
    site.boots.apply(first, site.io.now_us, .left_to_local_disk);
    try testing.expect((try ipxe.choose(first, 1)) != null);
    try testing.expectEqual(1, site.boots.table.count);
    site.boot(first).outcome = .{ .silent = .loader };
    try expectPart(try ipxe.choose(first, 0), "quiet");
    const next = site.boots.table.findByMac(macOf(1)).?;
    try testing.expect(!std.meta.eql(first, next));
    try testing.expectEqualStrings("one", site.boot(next).menu_entry.slice());
    try testing.expect((try ipxe.choose(next, 2)) != null);
    const other = try site.begin(1);
    try testing.expect((try ipxe.choose(other, 2)) != null);
    try testing.expectEqual(.local_disk, std.meta.activeTag(site.boot(other).outcome.?));
}

test "an iPXE script loads an initramfs where the version has one, and a kernel to go with it" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const version = &site.io.versions.buffer[0];
    var ipxe: Ipxe = .{ .site = site };
    const ref = try site.begin(1);
    const has = struct {
        fn part(text: ?[]const u8) bool {
            return std.mem.find(u8, text.?, "/initrd") != null;
        }
    }.part;
    try testing.expect(!has(ipxe.ask(ref, "")));
    version.initrd = .{};
    try testing.expect(has(ipxe.ask(ref, "")));
    version.kernel = null;
    try testing.expect(!has(ipxe.ask(ref, "")));
}

test "a peer that has shown its address is believed after one that has not" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addMenu();
    var loader: Loader = try .init(site);
    _ = loader.askAs("grub.cfg", false, false);
    try testing.expect(loader.texts.is_confirmed);
}
