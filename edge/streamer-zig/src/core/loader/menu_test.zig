//! Tests of menu.zig, of the policy with menus, of boots with a menu, and of the script.

const std = @import("std");
const base = @import("base");
const Boot = @import("../boot/boot.zig");
const boot_menu = @import("menu.zig");
const boot_menu_script = @import("ipxe_menu.zig");
const boot_policy = @import("../boot/policy.zig");
const boot_report = @import("../boot/report.zig");
const desired_state = @import("../uplink/desired_state.zig");
const loader_menu = @import("config_menu.zig");
const script = @import("../device/script.zig");

const testing = std.testing;
const Answer = boot_menu.Answer;

fn uuid(number: u8) base.Uuid {
    return .fromRandom(@splat(number));
}

const mac: base.Mac = .{ .bytes = .{ 2, 0xbf, 0, 0, 0, 1 } };

const versions = [_]desired_state.Version{
    .{
        .id = uuid(1),
        .number = 1,
        .sizeBytes = 512,
        .diskPath = "a",
        .kernelPath = "k",
        .commandLine = "",
    },
    .{ .id = uuid(2), .number = 2, .sizeBytes = 512, .diskPath = "b", .commandLine = "" },
};

const vdisks = [_]desired_state.Vdisk{.{ .id = uuid(30), .name = "disk", .versions = &versions }};

const all_entries = [_]desired_state.MenuEntry{
    .{ .kind = .version, .title = "Debian 12", .versionId = uuid(1) },
    .{ .kind = .version, .title = "Windows ${x}", .versionId = uuid(2) },
    .{ .kind = .version, .title = "Elsewhere", .versionId = uuid(9) },
    .{ .kind = .local_disk, .title = "Own disk" },
};

const Site = struct {
    menu: [1]desired_state.Menu,
    device: [1]desired_state.Device,
    state: desired_state.DesiredState,

    /// The menu with this default; the device's own version is 1.
    fn init(site: *Site, default: u32) void {
        site.menu = .{.{
            .id = uuid(40),
            .timeoutMs = 10_000,
            .defaultEntry = default,
            .entries = &all_entries,
        }};
        site.device = .{.{
            .id = uuid(11),
            .name = "a",
            .mac = mac,
            .versionId = uuid(1),
            .enabled = true,
            .menuId = uuid(40),
        }};
        site.state = .{
            .edgeId = uuid(20),
            .organizationId = uuid(21),
            .siteId = uuid(22),
            .siteName = "",
            .incarnation = 1,
            .counter = 1,
            .unknownDevices = .ignore,
            .vdisks = &vdisks,
            .devices = &site.device,
            .menus = &site.menu,
            .powerOns = &.{},
        };
    }

    fn decide(site: *const Site) !boot_policy.Target {
        var arena: std.heap.ArenaAllocator = .init(testing.allocator);
        defer arena.deinit();
        const policy: boot_policy.BootPolicy = try .init(arena.allocator(), &site.state);
        return policy.decide(mac, 0).target;
    }
};

test "a device with a menu is assigned the version of the default entry" {
    var site: Site = undefined;
    for ([_]struct { default: u32, version: u8, loads: bool }{
        .{ .default = 0, .version = 1, .loads = true },
        .{ .default = 1, .version = 2, .loads = false },
        // Another entry can be started.
        .{ .default = 2, .version = 9, .loads = false },
        .{ .default = 3, .version = 1, .loads = true },
    }) |case| {
        site.init(case.default);
        const target = try site.decide();
        try testing.expect(target.assignment.version_id.eql(uuid(case.version)));
        try testing.expect(target.assignment.device_id.?.eql(uuid(11)));
        try testing.expectEqual(case.loads, target.assignment.loader_files.kernel);
        try testing.expectEqual(case.default, target.menu.?.defaultEntry());
    }
    site.device[0].menuId = uuid(77);
    try testing.expectEqual(null, (try site.decide()).menu);
}

test "an answer names an entry of the current menu, or none" {
    var site: Site = undefined;
    site.init(0);
    const menu = (try site.decide()).menu.?;
    const mark = menu.mark();
    const windows = menu.choice(.{ .mark = mark, .entry = 1 }).?;
    try testing.expectEqualStrings("Windows ${x}", windows.title.slice());
    try testing.expect(windows.start.version.version_id.eql(uuid(2)));
    try testing.expectEqual(null, menu.choice(.{ .mark = mark, .entry = 4 }));
    try testing.expectEqual(null, menu.choice(.{ .mark = mark +% 1, .entry = 1 }));
    try testing.expect(!menu.isHere(2));
    try testing.expect(menu.choiceOf(2).start.version.version_id.eql(uuid(9)));
    try testing.expectEqual(.local_disk, std.meta.activeTag(menu.choiceOf(3).start));
    // Another timeout keeps the mark, another order changes it.
    site.menu[0].timeoutMs = 1_000;
    try testing.expectEqual(mark, (try site.decide()).menu.?.mark());
    const other_order = [_]desired_state.MenuEntry{
        all_entries[1],
        all_entries[0],
        all_entries[2],
        all_entries[3],
    };
    site.menu[0].entries = &other_order;
    try testing.expect(mark != (try site.decide()).menu.?.mark());
}

test "an answer survives its text form, and other queries are no answer" {
    const answer: Answer = .{ .mark = 0xabc, .entry = 15 };
    var buffer: [64]u8 = undefined;
    const text = try std.mem.print(&buffer, "{f}", .{answer});
    try testing.expectEqualStrings("menu=00000abc&entry=15", text);
    try testing.expectEqual(answer, Answer.parse(text));
    for ([_][]const u8{
        "",
        "entry=1",
        "menu=1",
        "menu=x&entry=1",
        "menu=1&entry=256",
        "menu=1&entry=-1",
        "menu=1_0&entry=1",
        "menu=123456789&entry=1",
    }) |other|
        try testing.expectEqual(null, Answer.parse(other));
}

fn testBoot(assignment: Boot.Assignment) Boot {
    return .init(
        .{ .id = uuid(50), .mac = mac, .handle = 1, .token = @splat(1) },
        assignment,
        0,
        0,
    );
}

test "a choice reassigns the boot and is reported, until something is loaded" {
    var site: Site = undefined;
    site.init(0);
    const target = try site.decide();
    var boot = testBoot(target.assignment);
    boot.apply(1, .{ .suspected = .{ .cause = .version_missing } });
    boot.apply(2, .{ .loader_begin = .script });
    const chosen = target.menu.?.choiceOf(1);
    boot.apply(3, .{
        .menu_choice = .{ .title = chosen.title, .assignment = chosen.start.version },
    });
    try testing.expect(boot.assignment.version_id.eql(uuid(2)));
    try testing.expectEqual(null, boot.suspicion);
    var buffer: [boot_report.size_max]u8 = undefined;
    const text = boot_report.encode(&boot, .{ .revision = 1 }, &buffer);
    try testing.expect(std.mem.find(u8, text, "\"menuEntry\":\"Windows ${x}\"") != null);
    try testing.expect(std.mem.find(u8, text, &uuid(2).toText()) != null);

    boot.apply(4, .{ .loader_begin = .kernel });
    const other = target.menu.?.choiceOf(0);
    boot.apply(5, .{ .menu_choice = .{ .title = other.title, .assignment = other.start.version } });
    try testing.expect(boot.assignment.version_id.eql(uuid(2)));
    try testing.expectEqualStrings("Windows ${x}", boot.menu_entry.slice());
}

test "a device waiting in its menu is silent only after the menu's time and the phase's" {
    const limit_us = @import("../boot/phase.zig").Phase.loader.silenceLimitUs().?;
    const hour_ms = 3_600_000;
    var boot = testBoot(.{ .version_id = uuid(1) });
    boot.apply(0, .{ .loader_begin = .script });
    boot.apply(0, .{ .menu_shown = .{ .timeout_ms = hour_ms } });
    boot.tick(hour_ms * std.time.us_per_ms + limit_us - 1, null);
    try testing.expect(!boot.isOver());
    boot.tick(hour_ms * std.time.us_per_ms + limit_us, null);
    try testing.expectEqual(.loader, boot.outcome.?.silent);

    var chosen = testBoot(.{ .version_id = uuid(1) });
    chosen.apply(0, .{ .loader_begin = .script });
    chosen.apply(0, .{ .menu_shown = .{ .timeout_ms = hour_ms } });
    chosen.apply(0, .{ .menu_choice = .{ .title = .init("x"), .assignment = null } });
    chosen.tick(limit_us, null);
    try testing.expect(chosen.isOver());
}

test "a device that leaves for its local disk has booted none of our versions" {
    var boot = testBoot(
        .{ .version_id = uuid(1), .vdisk_id = uuid(2), .device_id = uuid(3), .managed = true },
    );
    boot.apply(0, .{ .loader_begin = .script });
    boot.apply(1, .{ .menu_choice = .{ .title = .init("Own disk"), .assignment = null } });
    boot.apply(1, .left_to_local_disk);
    var buffer: [boot_report.size_max]u8 = undefined;
    const text = boot_report.encode(&boot, .{ .revision = 1 }, &buffer);
    try testing.expect(std.mem.find(u8, text, "\"outcome\":{\"kind\":\"local_disk\"}") != null);
    try testing.expect(std.mem.find(u8, text, "\"menuEntry\":\"Own disk\"") != null);
    try testing.expect(std.mem.find(u8, text, "ersionId") == null);
    try testing.expect(std.mem.find(u8, text, "vdiskId") == null);
}

test "the script shows every entry, waits for the timeout and leads to the default" {
    var site: Site = undefined;
    site.init(1);
    const menu = (try site.decide()).menu.?;
    var buffer: [boot_menu_script.size_max]u8 = undefined;
    const options: boot_menu_script.Options = .{
        .menu = menu,
        .handle = .{ .value = 0xab },
        .http = .{ .ip = .init(10, 0, 0, 1), .port = 6980 },
    };
    const text = boot_menu_script.write(options, &buffer);
    var want_buffer: [1024]u8 = undefined;
    try testing.expectEqualStrings(try std.mem.print(&want_buffer,
        \\#!ipxe
        \\set bootfarm_entry 1
        \\menu Bootfarm: choose what to start || goto bootfarm_chosen
        \\item 0 Debian 12
        \\item 1 Windows $(x}}
        \\item 2 Elsewhere (not at this edge)
        \\item 3 Own disk
        \\choose --timeout 10000 --default 1 bootfarm_entry || set bootfarm_entry 1
        \\:bootfarm_chosen
        \\chain --replace --autofree http://10.0.0.1:6980/b/00000000000000ab/boot.ipxe?menu={x:0>8}&entry=${{bootfarm_entry}} ||
        \\echo bootfarm: the edge does not answer, asking again in 5 s
        \\sleep 5
        \\goto bootfarm_chosen
        \\
    , .{menu.mark()}), text);

    var url_buffer: [128]u8 = undefined;
    const url = script.parse(text).chain.write(&url_buffer).?;
    const query = url[std.mem.findScalar(u8, url, '?').? + 1 ..];
    try testing.expectEqual(Answer{ .mark = menu.mark(), .entry = 1 }, Answer.parse(query).?);
}

test "the longest menu fits into a script" {
    var entries: [desired_state.menu_entries_max]desired_state.MenuEntry = undefined;
    const word = "#############################################;; || && ${xx} ; x x ";
    for (&entries) |*entry| entry.* = .{
        .kind = .version,
        .title = word[0..desired_state.menu_title_size_max],
        .versionId = uuid(9),
    };
    var site: Site = undefined;
    site.init(0);
    site.menu[0].entries = &entries;
    site.menu[0].timeoutMs = 3_600_000;
    var buffer: [boot_menu_script.size_max]u8 = undefined;
    const text = boot_menu_script.write(.{
        .menu = (try site.decide()).menu.?,
        .handle = .{ .value = std.math.maxInt(u64) },
        .http = .{ .ip = .init(255, 255, 255, 255), .port = 65535 },
    }, &buffer);
    try testing.expectEqual(16, std.mem.count(u8, text, "(not at this edge)\n"));
}

test "GRUB's menu shows every entry in quotes and requests the chosen one's configuration" {
    var site: Site = undefined;
    site.init(1);
    const menu = (try site.decide()).menu.?;
    var buffer: [loader_menu.size_max]u8 = undefined;
    const options: loader_menu.Options = .{
        .menu = menu,
        .handle = .{ .value = 0xab },
        .http = .{ .ip = .init(10, 0, 0, 1), .port = 6980 },
    };
    var expected: [1024]u8 = undefined;
    const mark = menu.mark();
    try testing.expectEqualStrings(try std.mem.print(&expected,
        \\set timeout=10
        \\set default=1
        \\menuentry 'Debian 12' {{
        \\  configfile (tftp,10.0.0.1)/b/00000000000000ab/menu-{x:0>8}-0.cfg
        \\}}
        \\menuentry 'Windows ${{x}}' {{
        \\  configfile (tftp,10.0.0.1)/b/00000000000000ab/menu-{x:0>8}-1.cfg
        \\}}
        \\menuentry 'Elsewhere (not at this edge)' {{
        \\  configfile (tftp,10.0.0.1)/b/00000000000000ab/menu-{x:0>8}-2.cfg
        \\}}
        \\menuentry 'Own disk' {{
        \\  configfile (tftp,10.0.0.1)/b/00000000000000ab/menu-{x:0>8}-3.cfg
        \\}}
        \\
    , .{ mark, mark, mark, mark }), loader_menu.writeGrub(&options, &buffer));
    const text = loader_menu.writePxelinux(&options, &buffer);
    try testing.expect(std.mem.find(u8, text, "SAY  1  Windows ${x}\n") != null);
    try testing.expect(std.mem.find(u8, text, "DEFAULT 1\nPROMPT 1\nTIMEOUT 100\n") != null);
    try testing.expect(std.mem.find(u8, text, "LABEL 3\n  CONFIG menu-") != null);
}

test "the longest menu of quotes fits into GRUB's configuration, and none ends its title" {
    var site: Site = undefined;
    site.init(0);
    const title: [desired_state.menu_title_size_max]u8 = @splat('\'');
    const entries: [desired_state.menu_entries_max]desired_state.MenuEntry =
        @splat(.{ .kind = .local_disk, .title = &title });
    site.menu[0].entries = &entries;
    const menu = (try site.decide()).menu.?;
    var buffer: [loader_menu.size_max]u8 = undefined;
    const text = loader_menu.writeGrub(&.{
        .menu = menu,
        .handle = .{ .value = 0xab },
        .http = .{ .ip = .init(255, 255, 255, 255), .port = 65535 },
        .by = .http,
    }, &buffer);
    try testing.expectEqual(entries.len, std.mem.count(u8, text, "' {\n  configfile "));
}
