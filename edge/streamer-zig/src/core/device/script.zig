//! The part of an iPXE script that a simulated device understands: `set`, `echo`, `kernel`,
//! `initrd`, `imgfetch`, `sanboot`, `boot` and `${name}`, and a boot menu, whose timeout expires at
//! once. A script that it does not understand ends the boot with the line's number, as in iPXE.

const std = @import("std");
const base = @import("base");
const clear_word = @import("../stream/seal.zig").clear_word;
const Tuning = @import("../target/tuning.zig");

pub const Plan = struct {
    stream: base.Endpoint,
    boot_id: base.Uuid,
    token: [16]u8,
    /// The downloads in order; slices of the script.
    downloads: base.BoundedArray(Url, 4) = .empty,
    /// The downloads are a disk that is read in parts.
    is_disk: bool = false,
    /// The edge serves its disks in clear text.
    clear: bool = false,
    /// The settings on its kernel line.
    tuning: Tuning = .{},
};

/// `http://IP:PORT/path`; slices of the parsed text.
pub const Url = struct {
    endpoint: base.Endpoint,
    path: []const u8,

    pub fn parse(text: []const u8) ?Url {
        const rest = std.mem.cutPrefix(u8, text, "http://") orelse return null;
        const slash = std.mem.findScalar(u8, rest, '/') orelse return null;
        const authority = rest[0..slash];
        const endpoint = base.Endpoint.parse(authority) catch
            base.Endpoint{ .ip = base.Ip4.parse(authority) catch return null, .port = 80 };
        if (!isPath(rest[slash..])) return null;
        return .{ .endpoint = endpoint, .path = rest[slash..] };
    }

    fn isPath(text: []const u8) bool {
        for (text) |byte| if (!std.ascii.isPrint(byte) or byte == ' ') return false;
        return true;
    }
};

/// `said`: the script's console output before it gave up; a slice of the script.
pub const Failure = struct { line: u32, said: []const u8 = "" };
pub const Result = union(enum) { plan: Plan, chain: Chain, failure: Failure };

/// The script to load in place of this one; slices of it.
pub const Chain = struct {
    url: []const u8,
    /// The value of the menu's default.
    entry: []const u8,

    const variable = "${bootfarm_entry}";

    /// Returns the URL as iPXE requests it; null if it does not fit or has other variables.
    pub fn write(chain: Chain, buffer: []u8) ?[]const u8 {
        var writer: std.Io.Writer = .fixed(buffer);
        const before, const after = std.mem.cut(u8, chain.url, variable) orelse .{ chain.url, "" };
        for ([_][]const u8{ before, after }) |part|
            if (std.mem.find(u8, part, "${") != null) return null;
        const entry = if (before.len < chain.url.len) chain.entry else "";
        writer.print("{s}{s}{s}", .{ before, entry, after }) catch return null;
        return writer.buffered();
    }
};

/// Parses a whole script. The boot's identity is set by the script, or by its kernel line if there
/// is a kernel.
pub fn parse(text: []const u8) Result {
    var stream: ?base.Endpoint = null;
    var boot_id: ?base.Uuid = null;
    var token: ?[16]u8 = null;
    var plan: Plan = undefined;
    plan.downloads = .empty;
    plan.is_disk = false;
    plan.clear = false;
    plan.tuning = .{};
    var is_booted = false;
    var entry: []const u8 = "";
    var said: []const u8 = "";
    var number: u32 = 0;
    var lines = std.mem.splitScalar(u8, text, '\n');
    while (lines.next()) |raw| {
        number += 1;
        const failure: Result = .{ .failure = .{ .line = number, .said = said } };
        const line = std.mem.trim(u8, raw, "\r ");
        if (number == 1 and !std.mem.eql(u8, line, "#!ipxe")) return failure;
        if (line.len == 0 or line[0] == '#' or line[0] == ':') continue;
        var words = std.mem.tokenizeScalar(u8, line, ' ');
        const command = words.next().?;
        if (std.mem.eql(u8, command, "set")) {
            const name = words.next() orelse return failure;
            const value = words.next() orelse return failure;
            if (std.mem.eql(u8, name, "bootfarm_edge"))
                stream = base.Endpoint.parse(value) catch return failure;
            if (std.mem.eql(u8, name, "bootfarm_boot"))
                boot_id = base.Uuid.parse(value) catch return failure;
            if (std.mem.eql(u8, name, "bootfarm_entry")) entry = value;
            if (std.mem.eql(u8, name, "bootfarm_stream"))
                plan.clear = std.mem.eql(u8, value, "clear");
            if (std.mem.eql(u8, name, "bootfarm_token"))
                token = parseToken(value) orelse return failure;
        } else if (std.mem.eql(u8, command, "echo")) {
            if (said.len == 0) said = std.mem.trim(u8, words.rest(), " ");
        } else if (isMenu(command)) {
            // The default was set before.
        } else if (std.mem.eql(u8, command, "chain")) {
            while (words.next()) |word| {
                const is_url = std.mem.startsWith(u8, word, "http://");
                if (is_url) return .{ .chain = .{ .url = word, .entry = entry } };
            }
            return failure;
        } else if (isDownload(command)) {
            const url = urlOf(&words) orelse return failure;
            plan.downloads.append(url) catch return failure;
            while (words.next()) |word| {
                if (std.mem.eql(u8, word, clear_word)) plan.clear = true;
                const setting = std.mem.cutPrefix(u8, word, "bootfarm.") orelse continue;
                _ = plan.tuning.take(setting) catch return failure;
            }
            if (std.mem.eql(u8, command, "sanboot")) {
                plan.is_disk = true;
                is_booted = true;
            }
        } else if (std.mem.eql(u8, command, "boot")) {
            is_booted = true;
        } else return failure;
    }
    const end: Result = .{ .failure = .{ .line = number } };
    if (!is_booted or plan.downloads.count == 0) return end;
    plan.stream = stream orelse return end;
    plan.boot_id = boot_id orelse return end;
    plan.token = token orelse return end;
    return .{ .plan = plan };
}

fn isMenu(command: []const u8) bool {
    for ([_][]const u8{ "menu", "item", "choose" }) |known|
        if (std.mem.eql(u8, command, known)) return true;
    return false;
}

fn isDownload(command: []const u8) bool {
    for ([_][]const u8{ "kernel", "initrd", "imgfetch", "sanboot" }) |known|
        if (std.mem.eql(u8, command, known)) return true;
    return false;
}

/// Returns the first word that is a URL; options and their values precede it.
fn urlOf(words: *std.mem.TokenIterator(u8, .scalar)) ?Url {
    while (words.next()) |word| if (Url.parse(word)) |url| return url;
    return null;
}

fn parseToken(text: []const u8) ?[16]u8 {
    var token: [16]u8 = undefined;
    if (text.len != 32) return null;
    _ = std.fmt.hexToBytes(&token, text) catch return null;
    return token;
}

const testing = std.testing;

const identity_lines =
    \\#!ipxe
    \\set bootfarm_edge 10.0.0.1:6910
    \\set bootfarm_boot 01010101-0101-4101-8101-010101010101
    \\set bootfarm_token 0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f
    \\
;

test "a script with a kernel names the downloads and the boot" {
    const plan = parse(identity_lines ++
        \\kernel http://10.0.0.1:6980/b/00000000000000ab/kernel quiet bootfarm.edge=${bootfarm_edge} initrd=initrd
        \\initrd --name initrd http://10.0.0.1:6980/b/00000000000000ab/initrd
        \\imgfetch --name x --timeout 2000 http://10.0.0.1:6980/b/00000000000000ab/start && imgfree x ||
        \\boot
        \\
    ).plan;
    try testing.expectEqual(6910, plan.stream.port);
    try testing.expectEqual(3, plan.downloads.count);
    try testing.expectEqualStrings("/b/00000000000000ab/initrd", plan.downloads.buffer[1].path);
    try testing.expectEqualStrings("/b/00000000000000ab/start", plan.downloads.buffer[2].path);
    try testing.expectEqual(0x0f, plan.token[15]);
    try testing.expect(!plan.is_disk);
    try testing.expectEqual(Tuning{}, plan.tuning);
    const words = "bootfarm.codec=lz4 bootfarm.codec=off bootfarm.mtu=1400";
    const tuned =
        parse(identity_lines ++ "kernel http://1.2.3.4/k " ++ words ++ "\nboot\n").plan;
    try testing.expectEqual(Tuning{ .codec = .off, .mtu = 1400 }, tuned.tuning);
}

test "a script without a kernel names its disk" {
    const plan = parse(
        identity_lines ++ "sanboot --no-describe http://10.0.0.1/b/00000000000000ab/disk\n",
    ).plan;
    try testing.expect(plan.is_disk);
    try testing.expect(!plan.clear);
    const clear = parse(identity_lines ++
        "set bootfarm_stream clear\nsanboot http://10.0.0.1/b/00000000000000ab/disk\n").plan;
    try testing.expect(clear.clear);
    try testing.expectEqual(80, plan.downloads.buffer[0].endpoint.port);
}

test "a script that gives up has printed why" {
    const failure =
        parse("#!ipxe\necho bootfarm: no\necho again in 60 s\nsleep 60\nreboot\n").failure;
    try testing.expectEqualStrings("bootfarm: no", failure.said);
    try testing.expectEqual(4, failure.line);
}

test "a script that cannot boot is refused with its line" {
    const cases = [_]struct { []const u8, u32 }{
        .{ "<html>", 1 },
        .{ "#!ipxe\nfrobnicate\n", 2 },
        .{ "#!ipxe\nset bootfarm_token 0f\n", 2 },
        .{ "#!ipxe\nkernel ftp://1.2.3.4/x\n", 2 },
        .{ identity_lines ++ "kernel http://10.0.0.1:6980/k\n", 6 },
        .{ identity_lines ++ "kernel http://10.0.0.1:6980/k bootfarm.codec=zip\nboot\n", 5 },
        .{ "#!ipxe\nkernel http://10.0.0.1:6980/k\nboot\n", 4 },
    };
    for (cases) |case| try testing.expectEqual(case[1], parse(case[0]).failure.line);
}
