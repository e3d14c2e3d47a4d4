//! The kernel's modules as depmod lists them (modules.dep, modules.builtin, modules.softdep,
//! modules.alias; see modules.dep(5) and modprobe.d(5)), and the selection of those needed to reach
//! a root disk over the network.

const std = @import("std");
const assert = std.debug.assert;
const Allocator = std.mem.Allocator;

/// The kernel's limit.
pub const name_size_max = 56;

/// The text of depmod's files; a missing file is empty. The slices are kept.
pub const Sources = struct {
    dep: []const u8,
    builtin: []const u8,
    softdep: []const u8,
    alias: []const u8,
};

pub const Module = struct {
    /// With `_` where a file name has `-`.
    name: []const u8,
    /// As in modules.dep, relative to the folder of the release.
    path: []const u8,
    /// Paths of its dependencies, as in modules.dep.
    needs: []const u8,
    is_chosen: bool = false,
};

pub const Availability = enum { module, built_in, absent };

pub const ModuleTable = @This();

modules: std.array_hash_map.String(Module) = .empty,
built_in: std.array_hash_map.String(void) = .empty,
/// Soft dependencies: modules that should be loaded first; name to names.
wanted_before: std.array_hash_map.String([]const u8) = .empty,
alias: []const u8,

pub const Error = Allocator.Error || error{BadModuleList};

/// Everything is in `arena` and in the sources.
pub fn parse(arena: Allocator, sources: Sources) Error!ModuleTable {
    var table: ModuleTable = .{ .alias = sources.alias };
    var dep_lines = std.mem.tokenizeScalar(u8, sources.dep, '\n');
    while (dep_lines.next()) |line| {
        const colon = std.mem.findScalar(u8, line, ':') orelse return error.BadModuleList;
        const path = line[0..colon];
        const name = try nameOf(arena, path);
        try table.modules.put(
            arena,
            name,
            .{ .name = name, .path = path, .needs = line[colon + 1 ..] },
        );
    }
    var builtin_lines = std.mem.tokenizeScalar(u8, sources.builtin, '\n');
    while (builtin_lines.next()) |path| try table.built_in.put(
        arena,
        try nameOf(arena, path),
        {},
    );
    var softdep_lines = std.mem.tokenizeScalar(u8, sources.softdep, '\n');
    while (softdep_lines.next()) |line| {
        const rest = std.mem.cutPrefix(u8, line, "softdep ") orelse continue;
        const space = std.mem.findScalar(u8, rest, ' ') orelse continue;
        const before = std.mem.cutPrefix(u8, rest[space + 1 ..], "pre: ") orelse continue;
        const end = std.mem.find(u8, before, "post:") orelse before.len;
        try table.wanted_before.put(arena, rest[0..space], before[0..end]);
    }
    return table;
}

pub fn availability(table: *const ModuleTable, name: []const u8) Availability {
    if (table.modules.contains(name)) return .module;
    return if (table.built_in.contains(name)) .built_in else .absent;
}

/// Selects a module and its dependencies; returns false if it is not a module (built in, or
/// missing).
pub fn choose(table: *ModuleTable, arena: Allocator, name: []const u8) Error!bool {
    const module = table.modules.getPtr(name) orelse return false;
    if (module.is_chosen) return true;
    module.is_chosen = true;
    var needs = std.mem.tokenizeScalar(u8, module.needs, ' ');
    while (needs.next()) |path| _ = try table.choose(arena, try nameOf(arena, path));
    var before = std.mem.tokenizeScalar(u8, table.wanted_before.get(name) orelse "", ' ');
    while (before.next()) |wanted| _ = try table.choose(arena, try normalised(arena, wanted));
    return true;
}

/// Writes modules.dep of the selected modules, with paths as in the archive (never compressed).
/// Soft dependencies become dependencies, since busybox's modprobe knows no soft ones.
pub fn writeDep(
    table: *const ModuleTable,
    arena: Allocator,
    writer: *std.Io.Writer,
) (Error || std.Io.Writer.Error)!void {
    for (table.modules.values()) |module| {
        if (!module.is_chosen) continue;
        try writer.print("{s}:", .{plainPath(module.path)});
        var needs = std.mem.tokenizeScalar(u8, module.needs, ' ');
        while (needs.next()) |path| try writer.print(" {s}", .{plainPath(path)});
        var before =
            std.mem.tokenizeScalar(u8, table.wanted_before.get(module.name) orelse "", ' ');
        while (before.next()) |wanted| {
            const first = table.modules.get(try normalised(arena, wanted)) orelse continue;
            try writer.print(" {s}", .{plainPath(first.path)});
        }
        try writer.writeByte('\n');
    }
}

/// Writes the lines of modules.alias that lead to selected modules.
pub fn writeAlias(table: *const ModuleTable, writer: *std.Io.Writer) std.Io.Writer.Error!void {
    var lines = std.mem.tokenizeScalar(u8, table.alias, '\n');
    while (lines.next()) |line| {
        if (!std.mem.startsWith(u8, line, "alias ")) continue;
        const space = std.mem.findScalarLast(u8, line, ' ').?;
        const module = table.modules.get(line[space + 1 ..]) orelse continue;
        if (module.is_chosen) try writer.print("{s}\n", .{line});
    }
}

/// Compression of a module's file, by its name.
pub const Packing = enum {
    plain,
    gzip,
    xz,
    zstd,

    pub fn of(path: []const u8) Packing {
        if (std.mem.endsWith(u8, path, ".gz")) return .gzip;
        if (std.mem.endsWith(u8, path, ".xz")) return .xz;
        if (std.mem.endsWith(u8, path, ".zst")) return .zstd;
        return .plain;
    }
};

/// The path without the extension of its compression.
pub fn plainPath(path: []const u8) []const u8 {
    return switch (Packing.of(path)) {
        .plain => path,
        .gzip, .xz => path[0 .. path.len - 3],
        .zstd => path[0 .. path.len - 4],
    };
}

fn nameOf(arena: Allocator, path: []const u8) ModuleTable.Error![]const u8 {
    const file = plainPath(std.fs.path.basenamePosix(path));
    const stem = std.mem.cutSuffix(u8, file, ".ko") orelse return error.BadModuleList;
    return normalised(arena, stem);
}

fn normalised(arena: Allocator, name: []const u8) ModuleTable.Error![]const u8 {
    if (name.len == 0 or name.len > name_size_max) return error.BadModuleList;
    const copy = try arena.dupe(u8, name);
    std.mem.replaceScalar(u8, copy, '-', '_');
    return copy;
}

const testing = std.testing;

const sources_of_tests: Sources = .{
    .dep =
    \\kernel/drivers/block/nbd.ko:
    \\kernel/drivers/net/virtio_net.ko: kernel/net/core/failover.ko.xz kernel/drivers/virtio/virtio.ko
    \\kernel/net/core/failover.ko.xz:
    \\kernel/drivers/virtio/virtio.ko:
    \\kernel/drivers/net/r8169.ko.zst: kernel/drivers/net/mdio_devres.ko
    \\kernel/drivers/net/mdio_devres.ko:
    \\kernel/drivers/net/phy/realtek.ko:
    \\kernel/drivers/net/usb/r8153-ecm.ko:
    \\
    ,
    .builtin = "kernel/net/packet/af_packet.ko\n",
    .softdep = "# Soft dependencies\nsoftdep r8169 pre: realtek\n",
    .alias =
    \\# Aliases
    \\alias virtio:d00000001v* virtio_net
    \\alias pci:v000010ECd00008168sv*sd*bc*sc*i* r8169
    \\
    ,
};

test "a selected module brings its dependencies, in the form that is in the archive" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var table: ModuleTable = try .parse(arena.allocator(), sources_of_tests);
    try testing.expect(try table.choose(arena.allocator(), "virtio_net"));
    try testing.expect(!try table.choose(arena.allocator(), "af_packet"));
    var written: std.Io.Writer.Allocating = .init(arena.allocator());
    try table.writeDep(arena.allocator(), &written.writer);
    try testing.expectEqualStrings(
        \\kernel/drivers/net/virtio_net.ko: kernel/net/core/failover.ko kernel/drivers/virtio/virtio.ko
        \\kernel/net/core/failover.ko:
        \\kernel/drivers/virtio/virtio.ko:
        \\
    , written.written());
}

test "a soft dependency becomes a dependency" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var table: ModuleTable = try .parse(arena.allocator(), sources_of_tests);
    try testing.expect(try table.choose(arena.allocator(), "r8169"));
    var written: std.Io.Writer.Allocating = .init(arena.allocator());
    try table.writeDep(arena.allocator(), &written.writer);
    try testing.expectEqualStrings(
        \\kernel/drivers/net/r8169.ko: kernel/drivers/net/mdio_devres.ko kernel/drivers/net/phy/realtek.ko
        \\kernel/drivers/net/mdio_devres.ko:
        \\kernel/drivers/net/phy/realtek.ko:
        \\
    , written.written());
}

test "only aliases of selected modules are kept" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var table: ModuleTable = try .parse(arena.allocator(), sources_of_tests);
    _ = try table.choose(arena.allocator(), "virtio_net");
    var written: std.Io.Writer.Allocating = .init(arena.allocator());
    try table.writeAlias(&written.writer);
    try testing.expectEqualStrings("alias virtio:d00000001v* virtio_net\n", written.written());
}

test "a module is loadable, built in or missing, whatever dashes its file name has" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const table: ModuleTable = try .parse(arena.allocator(), sources_of_tests);
    try testing.expectEqual(.module, table.availability("r8153_ecm"));
    try testing.expectEqual(.built_in, table.availability("af_packet"));
    try testing.expectEqual(.absent, table.availability("overlay"));
}

test "a list that depmod did not write is refused" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const wrong = [_][]const u8{ "kernel/nbd.ko", "kernel/nbd.o:", ".ko:" };
    for (wrong) |dep| {
        const sources: Sources = .{ .dep = dep, .builtin = "", .softdep = "", .alias = "" };
        try testing.expectError(error.BadModuleList, ModuleTable.parse(arena.allocator(), sources));
    }
}
