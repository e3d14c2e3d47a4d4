//! The sources of `bootfarm-edge boot-files import`: the system's packages, or the files of a
//! folder, and which of them make a set. Unknown programs are refused, and so is a set that would
//! fail in the middle of a boot.

const std = @import("std");
const base = @import("base");
const builtin = @import("builtin");
const host = @import("host");
const wire = @import("wire");
const Terminal = @import("terminal.zig").Terminal;
const boot_program = wire.boot_program;
const Allocator = std.mem.Allocator;
const Io = std.Io;
const File = host.program_set.File;
const Set = host.program_set.Set;

/// `Explained`: the reason has already been printed.
pub const Failure = error{ Explained, OutOfMemory };

pub const Sources = struct {
    io: Io,
    arena: Allocator,
    terminal: *Terminal,

    pub fn fail(sources: *const Sources, comptime format: []const u8, arguments: anytype) Failure {
        _ = sources.terminal.fail(format, arguments);
        return error.Explained;
    }

    /// Returns the sets that the packages below `root` make, or only `wanted` if it is given.
    pub fn ofSystem(
        sources: *const Sources,
        root: []const u8,
        wanted: ?[]const u8,
    ) Failure![]const Set {
        var sets: std.ArrayList(Set) = .empty;
        var is_known = false;
        for (&system_sets) |*recipe| {
            if (wanted) |name| if (!std.mem.eql(u8, name, recipe.name)) continue;
            is_known = true;
            if (try sources.cook(root, recipe)) |set| try sets.append(sources.arena, set);
        }
        if (!is_known) return sources.fail(
            "The system's packages make the sets ipxe, snponly, shim-grub and pxelinux; for {s}, name a folder with --from.",
            .{wanted.?},
        );
        if (sets.items.len == 0) return error.Explained;
        return sets.items;
    }

    /// Returns null, and prints why, if packages are missing.
    fn cook(sources: *const Sources, root: []const u8, recipe: *const Recipe) Failure!?Set {
        var files: std.ArrayList(File) = .empty;
        var missing: std.ArrayList([]const u8) = .empty;
        var is_broken = false;
        for (recipe.parts) |part| {
            const before = files.items.len;
            var lacks: ?*const Ingredient = null;
            for (part.ingredients) |*ingredient| {
                if (try sources.take(root, ingredient)) |file| {
                    try files.append(sources.arena, file);
                } else if (!ingredient.is_optional) {
                    lacks = ingredient;
                    if (part.reports_missing)
                        try addOnce(sources.arena, &missing, ingredient.package);
                }
            }
            const ingredient = lacks orelse continue;
            is_broken = is_broken or part.is_needed;
            // A part without any file is for other machines.
            if (!part.is_needed and files.items.len > before) _ = sources.terminal.fail(
                "{s}: {s} is missing, so its programs for this architecture are left out.",
                .{ recipe.name, ingredient.paths[0] },
            );
            files.items.len = before;
        }
        if (is_broken or files.items.len == 0) {
            const names = try std.mem.join(sources.arena, " ", missing.items);
            _ = sources.terminal.fail(
                "{s} is not imported because a package is not installed: apt install {s}",
                .{ recipe.name, names },
            );
            return null;
        }
        return .{
            .name = recipe.name,
            .first = host.program_set.chooseFirst(files.items),
            .files = files.items,
        };
    }

    fn take(
        sources: *const Sources,
        root: []const u8,
        ingredient: *const Ingredient,
    ) Failure!?File {
        for (ingredient.paths) |relative| {
            const path = try std.fs.path.join(sources.arena, &.{ root, relative });
            const bytes = try sources.read(path) orelse continue;
            const program = boot_program.inspect(bytes) catch |problem|
                return sources.fail("{s} {s}.", .{ path, boot_program.sentence(problem) });
            if (program.kind != ingredient.kind or
                program.arch != ingredient.arch) return sources.fail(
                "{s} is {s} for {s}, but {s} for {s} is expected; reinstall the package {s}.",
                .{
                    path,                      program.kind.text(),
                    archText(program.arch),    ingredient.kind.text(),
                    archText(ingredient.arch), ingredient.package,
                },
            );
            return File.of(ingredient.name, bytes, program);
        }
        return null;
    }

    /// Returns all files of a folder as the set `name`. `force_arch` is the architecture of unknown
    /// programs, if somebody names it.
    pub fn ofFolder(
        sources: *const Sources,
        folder: []const u8,
        name: []const u8,
        force_arch: ?boot_program.Arch,
    ) Failure!Set {
        const dir = Io.Dir.cwd().openDir(sources.io, folder, .{ .iterate = true }) catch
            return sources.fail("The folder {s} cannot be read.", .{folder});
        defer dir.close(sources.io);
        var files: std.ArrayList(File) = .empty;
        var iterator = dir.iterate();
        while (iterator.next(sources.io) catch
            return sources.fail("The folder {s} cannot be read.", .{folder})) |entry|
        {
            if (entry.name[0] == '.') continue;
            const stat = dir.statFile(sources.io, entry.name, .{}) catch continue;
            if (stat.kind != .file) continue;
            if (files.items.len == host.program_set.files_max) return sources.fail(
                "There are more than {d} files in {s}; a set has no more.",
                .{ host.program_set.files_max, folder },
            );
            const path = try std.fs.path.join(sources.arena, &.{ folder, entry.name });
            try files.append(sources.arena, try sources.fileOf(path, entry.name, force_arch));
        }
        if (files.items.len == 0) return sources.fail("There are no files in {s}.", .{folder});
        base.sort(File, files.items, {}, isBefore);
        const set: Set = .{
            .name = name,
            .first = host.program_set.chooseFirst(files.items),
            .files = files.items,
        };
        try sources.check(&set, folder);
        return set;
    }

    fn fileOf(
        sources: *const Sources,
        path: []const u8,
        file_name: []const u8,
        force_arch: ?boot_program.Arch,
    ) Failure!File {
        const name = try sources.arena.dupe(u8, publishedName(file_name));
        if (!host.program_set.isFileName(name)) return sources.fail(
            "{s}: names of boot programs are at most {d} letters, digits and .-_+",
            .{ path, host.program_set.name_size_max },
        );
        const bytes = try sources.read(path) orelse return sources.fail(
            "{s} cannot be read, or is larger than 64 MiB; boot programs are smaller.",
            .{path},
        );
        const program = boot_program.inspect(bytes) catch |problem| blk: {
            const arch = force_arch orelse return sources.fail(
                "{s} {s}; take it out of the folder, or name its architecture with --force-arch.",
                .{ path, boot_program.sentence(problem) },
            );
            break :blk boot_program.Program{ .kind = .other, .arch = arch };
        };
        return .of(name, bytes, program);
    }

    /// Refuses a set with which every boot would fail half way.
    fn check(sources: *const Sources, set: *const Set, folder: []const u8) Failure!void {
        const first = &set.first;
        if (first.bios == null and first.uefi_x64 == null and first.uefi_arm64 == null)
            return sources.fail("{s} has no program that a firmware could load first.", .{folder});
        for (set.files, 0..) |*file, index| {
            for (set.files[0..index]) |*other| if (std.mem.eql(u8, file.name, other.name))
                return sources.fail("{s} has two files that devices would know as {s}.", .{
                    folder, file.name,
                });
            const next: []const u8 = switch (file.kind) {
                // shim's default loader (Make.defaults of shim).
                .shim => if (file.arch == .arm64_uefi) "grubaa64.efi" else "grubx64.efi",
                .pxelinux => "ldlinux.c32",
                else => continue,
            };
            if (set.find(next) == null) return sources.fail(
                "{s} has {s}, and {s} loads {s}, which is missing.",
                .{ folder, file.name, file.kind.text(), next },
            );
        }
    }

    fn read(sources: *const Sources, path: []const u8) Failure!?[]const u8 {
        const limit: Io.Limit = .limited(boot_program.size_max);
        return Io.Dir.cwd().readFileAlloc(
            sources.io,
            path,
            sources.arena,
            limit,
        ) catch |err| switch (err) {
            error.OutOfMemory => error.OutOfMemory,
            else => null,
        };
    }
};

pub fn archText(arch: boot_program.Arch) []const u8 {
    return switch (arch) {
        .bios => "BIOS",
        .x64_uefi => "x64 UEFI",
        .arm64_uefi => "arm64 UEFI",
        .any => "other programs",
    };
}

fn isBefore(_: void, a: File, b: File) bool {
    return std.mem.order(u8, a.name, b.name) == .lt;
}

fn addOnce(arena: Allocator, list: *std.ArrayList([]const u8), text: []const u8) Failure!void {
    for (list.items) |known| if (std.mem.eql(u8, known, text)) return;
    try list.append(arena, text);
}

/// Packages name signed files `.signed`, and a distribution's GRUB for networks differs from the
/// name that shim loads.
fn publishedName(name: []const u8) []const u8 {
    const plain =
        if (std.mem.endsWith(u8, name, ".signed")) name[0 .. name.len - ".signed".len] else name;
    if (std.mem.eql(u8, plain, "grubnetx64.efi")) return "grubx64.efi";
    if (std.mem.eql(u8, plain, "grubnetaa64.efi")) return "grubaa64.efi";
    return plain;
}

/// A file of the system's packages: `paths` below the root, first Debian's, then those of others.
const Ingredient = struct {
    name: []const u8,
    paths: []const []const u8,
    package: []const u8,
    kind: boot_program.Kind,
    arch: boot_program.Arch,
    is_optional: bool = false,
};

/// Files that are only useful together. If a needed part is missing, the whole set is.
const Part = struct {
    ingredients: []const Ingredient,
    is_needed: bool,
    /// This system has a package for it.
    reports_missing: bool = true,
};

const Recipe = struct { name: []const u8, parts: []const Part };

const undionly: Ingredient = .{
    .name = "undionly.kpxe",
    .paths = &.{ "usr/lib/ipxe/undionly.kpxe", "usr/share/ipxe/undionly.kpxe" },
    .package = "ipxe",
    .kind = .ipxe,
    .arch = .bios,
};

/// Debian 12 keeps some in /boot and links to them; the links would lead out of a root.
fn ipxeUefi(comptime name: []const u8) []const Part {
    return &.{
        .{ .is_needed = true, .ingredients = &.{ undionly, .{
            .name = name,
            .paths = &.{ "boot/" ++ name, "usr/lib/ipxe/" ++ name, "usr/share/ipxe/" ++ name },
            .package = "ipxe",
            .kind = .ipxe,
            .arch = .x64_uefi,
        } } },
        .{ .is_needed = false, .reports_missing = false, .ingredients = &.{.{
            .name = "arm64-" ++ name,
            .paths = &.{"usr/share/ipxe/arm64-efi/" ++ name},
            .package = "ipxe-bootimgs-aarch64",
            .kind = .ipxe,
            .arch = .arm64_uefi,
        }} },
    };
}

fn shimGrub(
    comptime suffix: []const u8,
    comptime folder: []const u8,
    arch: boot_program.Arch,
    comptime debian: []const u8,
) Part {
    const reports_missing = builtin.cpu.arch == if (arch == .x64_uefi) .x86_64 else .aarch64;
    return .{ .is_needed = false, .reports_missing = reports_missing, .ingredients = &.{
        .{
            .name = "shim" ++ suffix ++ ".efi",
            .paths = &.{"usr/lib/shim/shim" ++ suffix ++ ".efi.signed"},
            .package = "shim-signed",
            .kind = .shim,
            .arch = arch,
        },
        .{
            .name = "grub" ++ suffix ++ ".efi",
            .paths = &.{"usr/lib/grub/" ++ folder ++ "-signed/grubnet" ++ suffix ++ ".efi.signed"},
            .package = "grub-efi-" ++ debian ++ "-signed",
            .kind = .grub,
            .arch = arch,
        },
        .{
            .name = "mm" ++ suffix ++ ".efi",
            .paths = &.{"usr/lib/shim/mm" ++ suffix ++ ".efi.signed"},
            .package = "shim-helpers-" ++ debian ++ "-signed",
            .kind = .shim_helper,
            .arch = arch,
            .is_optional = true,
        },
    } };
}

const system_sets = [_]Recipe{
    .{ .name = "ipxe", .parts = ipxeUefi("ipxe.efi") },
    .{ .name = "snponly", .parts = ipxeUefi("snponly.efi") },
    .{ .name = "shim-grub", .parts = &.{
        shimGrub("x64", "x86_64-efi", .x64_uefi, "amd64"),
        shimGrub("aa64", "arm64-efi", .arm64_uefi, "arm64"),
    } },
    .{ .name = "pxelinux", .parts = &.{.{ .is_needed = true, .ingredients = &.{
        .{
            .name = "pxelinux.0",
            .paths = &.{ "usr/lib/PXELINUX/pxelinux.0", "usr/share/syslinux/pxelinux.0" },
            .package = "pxelinux",
            .kind = .pxelinux,
            .arch = .bios,
        },
        .{
            .name = "ldlinux.c32",
            .paths = &.{
                "usr/lib/syslinux/modules/bios/ldlinux.c32",
                "usr/share/syslinux/ldlinux.c32",
            },
            .package = "syslinux-common",
            .kind = .syslinux_module,
            .arch = .any,
        },
    } }} },
};
