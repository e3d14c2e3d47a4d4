//! The kernel's modules as depmod lists them (modules.dep, modules.builtin, modules.softdep,
//! modules.alias, modules.builtin.modinfo; see modules.dep(5) and modprobe.d(5)), and the selection
//! of those needed to reach a root disk over the network.
//!
//! A soft dependency names a module or an alias. ext4 of Debian 12 has `pre: crypto-crc32c`, an
//! alias of crc32c_generic and crc32c_intel: without one of them no ext4 can be mounted.

const std = @import("std");
const assert = std.debug.assert;
const Allocator = std.mem.Allocator;
const alias_matches = @import("module_alias.zig").matches;

/// The kernel's limit.
pub const name_size_max = 56;

/// Limits of what an image may cost; the kernel of Debian with all drivers has 22,000 aliases.
const aliases_max = 1 << 17;
const alias_lookups_max = 1 << 12;
const soft_dependencies_max = 64;
/// Of modules that need others. depmod lists also what is needed indirectly.
const depth_max = 64;

/// The text of depmod's files; a missing file is empty. The slices are kept.
pub const Sources = struct {
    dep: []const u8,
    builtin: []const u8 = "",
    softdep: []const u8 = "",
    alias: []const u8 = "",
    /// `MODULE.KEY=VALUE` of what is built in, each ended by a zero byte (Linux 5.2). depmod makes
    /// modules.builtin.alias.bin of it, and no text.
    builtin_modinfo: []const u8 = "",
    /// The files of modprobe.d(5), the first has precedence.
    config: []const []const u8 = &.{},
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

/// What should be loaded before and after a module if it is there, each in words.
const SoftDependencies = struct {
    before: std.ArrayList([]const u8) = .empty,
    after: std.ArrayList([]const u8) = .empty,
};

const Alias = struct { pattern: []const u8, name: []const u8 };

pub const ModuleTable = @This();

modules: std.array_hash_map.String(Module) = .empty,
built_in: std.array_hash_map.String(void) = .empty,
/// By module. Several lines about one module add up.
soft: std.array_hash_map.String(SoftDependencies) = .empty,
/// Those of modprobe.d precede the names of modules, as for modprobe.
config_aliases: std.ArrayList(Alias) = .empty,
aliases: std.ArrayList(Alias) = .empty,
built_in_aliases: std.ArrayList([]const u8) = .empty,
/// Selected, but not yet what they need.
pending: std.ArrayList([]const u8) = .empty,
alias_lookups_left: u32 = alias_lookups_max,

pub const Error = Allocator.Error || error{BadModuleList};

/// Everything is in `arena` and in the sources.
pub fn parse(arena: Allocator, sources: Sources) Error!ModuleTable {
    var table: ModuleTable = .{};
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
    for (sources.config) |text| try table.parseLines(arena, text, &table.config_aliases);
    try table.parseLines(arena, sources.alias, &table.aliases);
    try table.parseLines(arena, sources.softdep, &table.aliases);
    var facts = std.mem.tokenizeScalar(u8, sources.builtin_modinfo, 0);
    while (facts.next()) |fact| {
        const alias = std.mem.cut(u8, fact, ".alias=") orelse continue;
        if (table.built_in_aliases.items.len == aliases_max) break;
        if (std.mem.findScalar(u8, alias[0], '=') == null)
            try table.built_in_aliases.append(arena, alias[1]);
    }
    return table;
}

/// Takes the lines `alias PATTERN MODULE` and `softdep MODULE pre: ... post: ...` of a file; a
/// backslash joins a line with the next one. Other lines do not concern an initramfs.
fn parseLines(
    table: *ModuleTable,
    arena: Allocator,
    text: []const u8,
    aliases: *std.ArrayList(Alias),
) Error!void {
    const joined = if (std.mem.find(u8, text, "\\\n") == null)
        text
    else
        try std.mem.replaceOwned(u8, arena, text, "\\\n", " ");
    var lines = std.mem.tokenizeScalar(u8, joined, '\n');
    while (lines.next()) |line| {
        var words = std.mem.tokenizeAny(u8, line, " \t\r");
        const command = words.next() orelse continue;
        if (std.mem.eql(u8, command, "alias")) {
            const pattern = words.next() orelse continue;
            const name = words.next() orelse continue;
            if (aliases.items.len < aliases_max) try aliases.append(arena, .{
                .pattern = pattern,
                .name = try underscored(arena, name),
            });
        } else if (std.mem.eql(u8, command, "softdep")) {
            const name = words.next() orelse continue;
            try table.addSoftDependencies(arena, name, &words);
        }
    }
}

/// Words in front of `pre:` and `post:` have no meaning (libkmod).
fn addSoftDependencies(
    table: *ModuleTable,
    arena: Allocator,
    name: []const u8,
    words: *std.mem.TokenIterator(u8, .any),
) Error!void {
    const entry = try table.soft.getOrPut(arena, try underscored(arena, name));
    if (!entry.found_existing) entry.value_ptr.* = .{};
    var list: ?*std.ArrayList([]const u8) = null;
    while (words.next()) |word| {
        if (std.mem.eql(u8, word, "pre:")) list = &entry.value_ptr.before //
        else if (std.mem.eql(u8, word, "post:")) list = &entry.value_ptr.after //
        else if (list) |found| if (found.items.len < soft_dependencies_max)
            try found.append(arena, word);
    }
}

/// Looks a name or an alias up.
pub fn availability(table: *const ModuleTable, name: []const u8) Availability {
    if (table.modules.contains(name)) return .module;
    if (table.built_in.contains(name)) return .built_in;
    for ([_][]const Alias{ table.config_aliases.items, table.aliases.items }) |aliases| {
        for (aliases) |alias| if (alias_matches(alias.pattern, name)) {
            if (table.modules.contains(alias.name)) return .module;
            if (table.built_in.contains(alias.name)) return .built_in;
        };
    }
    for (table.built_in_aliases.items) |pattern|
        if (alias_matches(pattern, name)) return .built_in;
    return .absent;
}

/// Selects the modules of a name or an alias, with their dependencies and soft dependencies.
/// Returns false if there is none (built in, or missing).
pub fn choose(table: *ModuleTable, arena: Allocator, name: []const u8) Error!bool {
    const is_found = try table.select(arena, name);
    // Ends, since a module becomes pending once.
    while (table.pending.pop()) |chosen| {
        var needs = std.mem.tokenizeScalar(u8, table.modules.get(chosen).?.needs, ' ');
        while (needs.next()) |path| _ = try table.select(arena, try nameOf(arena, path));
        const soft = table.soft.get(chosen) orelse continue;
        for (soft.before.items) |wanted| _ = try table.select(arena, wanted);
        for (soft.after.items) |wanted| _ = try table.select(arena, wanted);
    }
    return is_found;
}

fn select(table: *ModuleTable, arena: Allocator, name: []const u8) Allocator.Error!bool {
    const plain = try underscored(arena, name);
    if (try table.selectByAlias(arena, table.config_aliases.items, plain)) return true;
    if (table.modules.contains(plain)) {
        try table.selectModule(arena, plain);
        return true;
    }
    if (table.built_in.contains(plain)) return false;
    return table.selectByAlias(arena, table.aliases.items, plain);
}

/// Selects all modules of an alias: which of them runs is known by the device alone (crc32c_intel
/// needs a processor with SSE 4.2).
fn selectByAlias(
    table: *ModuleTable,
    arena: Allocator,
    aliases: []const Alias,
    name: []const u8,
) Allocator.Error!bool {
    if (aliases.len == 0 or table.alias_lookups_left == 0) return false;
    table.alias_lookups_left -= 1;
    var is_found = false;
    for (aliases) |alias| {
        if (!alias_matches(alias.pattern, name)) continue;
        if (!table.modules.contains(alias.name)) continue;
        try table.selectModule(arena, alias.name);
        is_found = true;
    }
    return is_found;
}

fn selectModule(table: *ModuleTable, arena: Allocator, name: []const u8) Allocator.Error!void {
    const module = table.modules.getPtr(name).?;
    if (module.is_chosen) return;
    module.is_chosen = true;
    try table.pending.append(arena, module.name);
}

/// Writes modules.dep of the selected modules, with paths as in the archive (never compressed).
///
/// A soft dependency `pre:` that is a module's name becomes a dependency, since busybox's modprobe
/// knows no soft ones. One that is an alias does not: some of its modules may refuse this
/// processor, and busybox loads nothing after a dependency that fails. The kernel asks for it by
/// the alias.
pub fn writeDep(
    table: *const ModuleTable,
    arena: Allocator,
    writer: *std.Io.Writer,
) (Error || std.Io.Writer.Error)!void {
    for (table.modules.values()) |module| {
        if (!module.is_chosen) continue;
        var order: LoadOrder = .{ .table = table, .arena = arena };
        try order.add(module.name, 0);
        // As depmod writes it: what is loaded first stands last.
        try writer.print("{s}:", .{plainPath(module.path)});
        const names = order.names.items;
        assert(std.mem.eql(u8, names[names.len - 1], module.name));
        for (1..names.len) |index| {
            const first = table.modules.get(names[names.len - 1 - index]).?;
            try writer.print(" {s}", .{plainPath(first.path)});
        }
        try writer.writeByte('\n');
    }
}

/// The modules that have to be loaded for one, in their order.
const LoadOrder = struct {
    table: *const ModuleTable,
    arena: Allocator,
    /// Ends the circles of soft dependencies.
    entered: std.array_hash_map.String(void) = .empty,
    names: std.ArrayList([]const u8) = .empty,

    /// Adds a module after what has to be there before it.
    fn add(order: *LoadOrder, name: []const u8, depth: usize) Error!void {
        const module = order.table.modules.get(name) orelse return;
        if (depth == depth_max) return;
        if ((try order.entered.getOrPut(order.arena, module.name)).found_existing) return;
        if (order.table.soft.get(module.name)) |soft| for (soft.before.items) |wanted|
            try order.add(try underscored(order.arena, wanted), depth + 1);
        var needs = std.mem.splitBackwardsScalar(u8, module.needs, ' ');
        while (needs.next()) |path| if (path.len > 0)
            try order.add(try nameOf(order.arena, path), depth + 1);
        try order.names.append(order.arena, module.name);
    }
};

/// Writes the aliases of selected modules in the form of modules.alias.
pub fn writeAlias(table: *const ModuleTable, writer: *std.Io.Writer) std.Io.Writer.Error!void {
    for ([_][]const Alias{ table.config_aliases.items, table.aliases.items }) |aliases| {
        for (aliases) |alias| {
            const module = table.modules.get(alias.name) orelse continue;
            if (module.is_chosen)
                try writer.print("alias {s} {s}\n", .{ alias.pattern, alias.name });
        }
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
    return underscored(arena, name);
}

fn underscored(arena: Allocator, name: []const u8) Allocator.Error![]const u8 {
    if (std.mem.findScalar(u8, name, '-') == null) return name;
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

/// Modules as the kernel of Debian 12 with all drivers has them, and some that it might have.
const soft_sources: Sources = .{
    .dep =
    \\kernel/fs/ext4/ext4.ko: kernel/fs/jbd2/jbd2.ko
    \\kernel/fs/jbd2/jbd2.ko:
    \\kernel/fs/xfs/xfs.ko: kernel/lib/libcrc32c.ko
    \\kernel/lib/libcrc32c.ko:
    \\kernel/fs/btrfs/btrfs.ko: kernel/lib/libcrc32c.ko
    \\kernel/crypto/crc32c_generic.ko:
    \\kernel/arch/x86/crypto/crc32c-intel.ko: kernel/crypto/crypto_simd.ko
    \\kernel/crypto/crypto_simd.ko:
    \\kernel/crypto/xxhash_generic.ko:
    \\kernel/drivers/one.ko:
    \\kernel/drivers/two.ko: kernel/drivers/two-core.ko
    \\kernel/drivers/two-core.ko:
    \\kernel/drivers/three.ko:
    \\kernel/drivers/four.ko:
    \\
    ,
    .builtin = "kernel/crypto/sha256_generic.ko\nkernel/drivers/there.ko\n",
    .builtin_modinfo = "sha256_generic.alias=sha256\x00sha256_generic.license=GPL\x00",
    .softdep =
    \\# Soft dependencies extracted from modules themselves.
    \\softdep ext4 pre: crypto-crc32c
    \\softdep libcrc32c pre: crc32c
    \\softdep btrfs pre: sha256
    \\softdep btrfs pre: xxhash64
    \\softdep one ignored pre: two there post: three
    \\softdep three post: nothing-of-this-name-that-is-much-longer-than-the-name-of-any-module one
    \\
    ,
    .alias =
    \\# Aliases extracted from modules themselves.
    \\alias crypto-crc32c crc32c_intel
    \\alias crypto-crc32c crc32c_generic
    \\alias crc32c crc32c_intel
    \\alias crc32c crc32c_generic
    \\alias xxhash?[0-9] xxhash_generic
    \\
    ,
    .config = &.{
        \\# Local.
        \\options one debug=1
        \\softdep two \\
        \\  pre: extra
        \\alias extra four
        \\alias
        \\softdep
        \\
    },
};

/// Expects that selecting `name` selects these modules, separated by a space.
fn expectChosen(sources: Sources, name: []const u8, expected: []const u8) !void {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var table: ModuleTable = try .parse(arena.allocator(), sources);
    _ = try table.choose(arena.allocator(), name);
    var names: std.Io.Writer.Allocating = .init(arena.allocator());
    for (table.modules.values()) |module| {
        if (!module.is_chosen) continue;
        const separator = if (names.written().len == 0) "" else " ";
        try names.writer.print("{s}{s}", .{ separator, module.name });
    }
    try testing.expectEqualStrings(expected, names.written());
}

test "a soft dependency on an alias brings every module of the alias, with what they need" {
    try expectChosen(soft_sources, "ext4", "ext4 jbd2 crc32c_generic crc32c_intel crypto_simd");
}

test "the soft dependency of a dependency is followed" {
    try expectChosen(
        soft_sources,
        "xfs",
        "xfs libcrc32c crc32c_generic crc32c_intel crypto_simd",
    );
}

test "all lines about a module count, patterns match, and what is built in adds nothing" {
    try expectChosen(
        soft_sources,
        "btrfs",
        "libcrc32c btrfs crc32c_generic crc32c_intel crypto_simd xxhash_generic",
    );
}

test "pre and post, modprobe.d, circles, and names that nothing has" {
    try expectChosen(soft_sources, "one", "one two two_core three four");
    try expectChosen(soft_sources, "nothing", "");
    try expectChosen(.{ .dep = "" }, "ext4", "");
}

test "an alias of modprobe.d counts more than the name of a module" {
    var sources = soft_sources;
    sources.config = &.{"alias crc32c-generic xxhash_generic\n"};
    try expectChosen(sources, "crc32c_generic", "xxhash_generic");
}

test "a soft dependency by an alias is found by the alias, and is no dependency" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var table: ModuleTable = try .parse(arena.allocator(), soft_sources);
    try testing.expect(try table.choose(arena.allocator(), "ext4"));
    var written: std.Io.Writer.Allocating = .init(arena.allocator());
    try table.writeDep(arena.allocator(), &written.writer);
    try testing.expectEqualStrings(
        \\kernel/fs/ext4/ext4.ko: kernel/fs/jbd2/jbd2.ko
        \\kernel/fs/jbd2/jbd2.ko:
        \\kernel/crypto/crc32c_generic.ko:
        \\kernel/arch/x86/crypto/crc32c-intel.ko: kernel/crypto/crypto_simd.ko
        \\kernel/crypto/crypto_simd.ko:
        \\
    , written.written());
    written.clearRetainingCapacity();
    try table.writeAlias(&written.writer);
    try testing.expectEqualStrings(
        \\alias crypto-crc32c crc32c_intel
        \\alias crypto-crc32c crc32c_generic
        \\alias crc32c crc32c_intel
        \\alias crc32c crc32c_generic
        \\
    , written.written());
}

test "a chain of soft dependencies by name is loaded in its order" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var table: ModuleTable = try .parse(arena.allocator(), .{
        .dep = soft_sources.dep,
        .softdep = "softdep one pre: two\nsoftdep two pre: three\nsoftdep three pre: one\n",
    });
    try testing.expect(try table.choose(arena.allocator(), "one"));
    var written: std.Io.Writer.Allocating = .init(arena.allocator());
    try table.writeDep(arena.allocator(), &written.writer);
    const line = std.mem.sliceTo(written.written(), '\n');
    try testing.expectEqualStrings(
        "kernel/drivers/one.ko: kernel/drivers/two.ko kernel/drivers/two-core.ko kernel/drivers/three.ko",
        line,
    );
}

test "a name is available by its aliases, too" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const table: ModuleTable = try .parse(arena.allocator(), soft_sources);
    try testing.expectEqual(.module, table.availability("crypto-crc32c"));
    try testing.expectEqual(.module, table.availability("extra"));
    try testing.expectEqual(.built_in, table.availability("sha256"));
    try testing.expectEqual(.absent, table.availability("license=GPL"));
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
        const parsed = ModuleTable.parse(arena.allocator(), .{ .dep = dep });
        try testing.expectError(error.BadModuleList, parsed);
    }
}
