//! A set of boot programs as a directory: its files, and a manifest that describes each of them.
//! `bootfarm-edge boot-files import` writes sets, `serve` reads them. A set is complete, each file
//! as in the manifest, or is not used.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire");
const boot_program = wire.boot_program;
const Io = std.Io;

pub const files_max = 64;
pub const name_size_max = core.dhcp.Service.Programs.name_size_max;
pub const set_name_size_max = 32;
pub const manifest_name = "manifest.json";
const manifest_size_max = 64 << 10;
const schema = 1;

/// One file and its description. Slices live as long as the set.
pub const File = struct {
    /// The name that devices request.
    name: []const u8,
    bytes: []const u8,
    kind: boot_program.Kind,
    arch: boot_program.Arch,
    version: base.UntrustedText,
    signers: wire.authenticode.Signers,
    sha256: [32]u8,

    pub fn of(name: []const u8, bytes: []const u8, program: boot_program.Program) File {
        var file: File = .{
            .name = name,
            .bytes = bytes,
            .kind = program.kind,
            .arch = program.arch,
            .version = program.version,
            .signers = program.signers,
            .sha256 = undefined,
        };
        base.Sha256.hash(bytes, &file.sha256, .{});
        return file;
    }
};

pub const Set = struct {
    name: []const u8,
    /// The programs that firmware loads first.
    first: core.dhcp.Service.Programs,
    files: []const File,

    pub fn find(set: *const Set, name: []const u8) ?*const File {
        for (set.files) |*file| if (std.mem.eql(u8, file.name, name)) return file;
        return null;
    }

    pub fn isFirst(set: *const Set, name: []const u8) bool {
        const first = &set.first;
        for ([_]?[]const u8{ first.bios, first.uefi_x64, first.uefi_arm64 }) |candidate|
            if (candidate) |program| if (std.mem.eql(u8, program, name)) return true;
        return false;
    }
};

/// Chooses the first program for each architecture, or null: a program that starts others comes
/// before one that starts a system. Among equals, the first by name.
pub fn chooseFirst(files: []const File) core.dhcp.Service.Programs {
    return .{
        .bios = firstOf(files, .bios),
        .uefi_x64 = firstOf(files, .x64_uefi),
        .uefi_arm64 = firstOf(files, .arm64_uefi),
    };
}

fn firstOf(files: []const File, arch: boot_program.Arch) ?[]const u8 {
    var best: ?*const File = null;
    for (files) |*file| {
        if (file.arch != arch) continue;
        const rank = rankOf(file) orelse continue;
        const known = best orelse {
            best = file;
            continue;
        };
        const known_rank = rankOf(known).?;
        const is_before = std.mem.order(u8, file.name, known.name) == .lt;
        if (rank < known_rank or (rank == known_rank and is_before)) best = file;
    }
    return if (best) |file| file.name else null;
}

fn rankOf(file: *const File) ?u8 {
    return switch (file.kind) {
        .shim => 0,
        // The firmware's own driver of the card is the one that works.
        .ipxe => if (std.mem.startsWith(u8, file.name, "snponly")) 1 else 2,
        .grub => 3,
        .pxelinux => 4,
        .other => 5,
        .shim_helper, .syslinux_module => null,
    };
}

pub fn isSetName(name: []const u8) bool {
    if (name.len == 0 or name.len > set_name_size_max or name[0] == '-') return false;
    for (name) |byte| switch (byte) {
        'a'...'z', '0'...'9', '-' => {},
        else => return false,
    };
    return true;
}

/// Names appear unescaped in DHCP answers and URLs.
pub fn isFileName(name: []const u8) bool {
    if (name.len == 0 or name.len > name_size_max or name[0] == '.') return false;
    for (name) |byte| switch (byte) {
        'a'...'z', 'A'...'Z', '0'...'9', '.', '-', '_', '+' => {},
        else => return false,
    };
    return true;
}

/// The contents of the file. Names are those of the JSON.
const Manifest = struct {
    schema: u32,
    name: []const u8,
    first: First,
    files: []const Entry,

    const First = struct {
        bios: ?[]const u8 = null,
        x64Uefi: ?[]const u8 = null,
        arm64Uefi: ?[]const u8 = null,
    };

    const Entry = struct {
        file: []const u8,
        kind: boot_program.Kind,
        arch: boot_program.Arch,
        version: []const u8 = "",
        sizeBytes: u64,
        sha256: []const u8,
        signedBy: []const []const u8 = &.{},
    };
};

pub fn writeManifest(arena: std.mem.Allocator, set: *const Set) error{OutOfMemory}![]const u8 {
    const entries = try arena.alloc(Manifest.Entry, set.files.len);
    for (entries, set.files) |*entry, *file| {
        const signed_by = try arena.alloc([]const u8, file.signers.constSlice().len);
        for (signed_by, file.signers.constSlice()) |*name, *signer| name.* = signer.slice();
        entry.* = .{
            .file = file.name,
            .kind = file.kind,
            .arch = file.arch,
            .version = file.version.slice(),
            .sizeBytes = file.bytes.len,
            .sha256 = try arena.dupe(u8, &std.fmt.bytesToHex(file.sha256, .lower)),
            .signedBy = signed_by,
        };
    }
    const manifest: Manifest = .{
        .schema = schema,
        .name = set.name,
        .first = .{
            .bios = set.first.bios,
            .x64Uefi = set.first.uefi_x64,
            .arm64Uefi = set.first.uefi_arm64,
        },
        .files = entries,
    };
    var writer: Io.Writer.Allocating = .init(arena);
    std.json.Stringify.value(manifest, .{ .whitespace = .indent_2 }, &writer.writer) catch
        return error.OutOfMemory;
    writer.writer.writeByte('\n') catch return error.OutOfMemory;
    return writer.written();
}

pub const LoadError = error{
    NoManifest,
    ManifestDamaged,
    SchemaTooNew,
    FileMissing,
    FileChanged,
    OutOfMemory,
};

/// Explains why a set is left out, as the end of a sentence that begins with its directory.
pub fn sentence(problem: LoadError) []const u8 {
    return switch (problem) {
        error.NoManifest => "has no manifest.json: only bootfarm-edge boot-files import makes sets",
        error.ManifestDamaged => "has a manifest.json that cannot be read; import the set again",
        error.SchemaTooNew => "was made by a newer bootfarm-edge; import the set again",
        error.FileMissing => "lacks a file that its manifest.json names; import the set again",
        error.FileChanged => "has a file that differs from its manifest.json; import the set again",
        error.OutOfMemory => "does not fit into memory",
    };
}

/// Loads the set of the directory `name` in `dir` and compares each file with the manifest.
pub fn load(arena: std.mem.Allocator, io: Io, parent: Io.Dir, name: []const u8) LoadError!Set {
    const dir = parent.openDir(io, name, .{}) catch return error.NoManifest;
    defer dir.close(io);
    const text =
        try readBounded(arena, io, dir, manifest_name, manifest_size_max, error.NoManifest);
    const Head = struct { schema: u32 };
    const head = try parse(Head, arena, text);
    if (head.schema > schema) return error.SchemaTooNew;
    const manifest = try parse(Manifest, arena, text);
    if (!std.mem.eql(u8, manifest.name, name)) return error.ManifestDamaged;
    if (manifest.files.len == 0 or manifest.files.len > files_max) return error.ManifestDamaged;
    const files = try arena.alloc(File, manifest.files.len);
    for (files, manifest.files) |*file, *entry| {
        if (!isFileName(entry.file)) return error.ManifestDamaged;
        const size_max = boot_program.size_max;
        const bytes = try readBounded(arena, io, dir, entry.file, size_max, error.FileMissing);
        file.* = .of(entry.file, bytes, .{
            .kind = entry.kind,
            .arch = entry.arch,
            .version = .init(entry.version),
        });
        for (entry.signedBy) |signer| file.signers.append(.init(signer)) catch break;
        const hex = std.fmt.bytesToHex(file.sha256, .lower);
        if (!std.mem.eql(u8, &hex, entry.sha256)) return error.FileChanged;
    }
    const set: Set = .{
        .name = manifest.name,
        .first = .{
            .bios = manifest.first.bios,
            .uefi_x64 = manifest.first.x64Uefi,
            .uefi_arm64 = manifest.first.arm64Uefi,
        },
        .files = files,
    };
    const first = &set.first;
    for ([_]?[]const u8{ first.bios, first.uefi_x64, first.uefi_arm64 }) |wanted|
        if (wanted) |program| if (set.find(program) == null) return error.ManifestDamaged;
    return set;
}

fn parse(comptime T: type, arena: std.mem.Allocator, text: []const u8) LoadError!T {
    return std.json.parseFromSliceLeaky(T, arena, text, .{
        .ignore_unknown_fields = true,
        .allocate = .alloc_always,
    }) catch |err| switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        else => error.ManifestDamaged,
    };
}

fn readBounded(
    arena: std.mem.Allocator,
    io: Io,
    dir: Io.Dir,
    name: []const u8,
    size_max: usize,
    comptime absent: LoadError,
) LoadError![]const u8 {
    return dir.readFileAlloc(io, name, arena, .limited(size_max)) catch |err| switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        else => absent,
    };
}

const testing = std.testing;

fn testFile(name: []const u8, kind: boot_program.Kind, arch: boot_program.Arch) File {
    return .of(name, name, .{ .kind = kind, .arch = arch });
}

test "the first program for each architecture is the one that starts others" {
    const files = [_]File{
        testFile("mmx64.efi", .shim_helper, .x64_uefi),
        testFile("grubx64.efi", .grub, .x64_uefi),
        testFile("shimx64.efi", .shim, .x64_uefi),
        testFile("ipxe.efi", .ipxe, .x64_uefi),
        testFile("grubaa64.efi", .grub, .arm64_uefi),
        testFile("ldlinux.c32", .syslinux_module, .any),
        testFile("pxelinux.0", .pxelinux, .bios),
    };
    const first = chooseFirst(&files);
    try testing.expectEqualStrings("shimx64.efi", first.uefi_x64.?);
    try testing.expectEqualStrings("grubaa64.efi", first.uefi_arm64.?);
    try testing.expectEqualStrings("pxelinux.0", first.bios.?);
    try testing.expectEqual(null, chooseFirst(files[5..6]).bios);
    const both = [_]File{
        testFile("ipxe.efi", .ipxe, .x64_uefi), testFile("snponly.efi", .ipxe, .x64_uefi),
    };
    try testing.expectEqualStrings("snponly.efi", chooseFirst(&both).uefi_x64.?);
}

test "a set survives being written to its directory, and a damaged one is refused" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const io = testing.io;
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const gpa = arena.allocator();
    var file = testFile("shimx64.efi", .shim, .x64_uefi);
    file.version = .init("16.1");
    file.signers.appendAssumeCapacity(.init("A \"Site\""));
    const files = [_]File{ file, testFile("grubx64.efi", .grub, .x64_uefi) };
    const set: Set = .{ .name = "shim-grub", .first = chooseFirst(&files), .files = &files };
    try testing.expectError(error.NoManifest, load(gpa, io, tmp.dir, "shim-grub"));
    try tmp.dir.createDirPath(io, "shim-grub");
    const dir = try tmp.dir.openDir(io, "shim-grub", .{});
    defer dir.close(io);
    const manifest = try writeManifest(gpa, &set);
    try dir.writeFile(io, .{ .sub_path = manifest_name, .data = manifest });
    try testing.expectError(error.FileMissing, load(gpa, io, tmp.dir, "shim-grub"));
    for (files) |each| try dir.writeFile(io, .{ .sub_path = each.name, .data = each.bytes });
    const loaded = try load(gpa, io, tmp.dir, "shim-grub");
    try testing.expectEqualDeep(files[0], loaded.files[0]);
    try testing.expectEqualStrings("shimx64.efi", loaded.first.uefi_x64.?);
    try dir.writeFile(io, .{ .sub_path = "grubx64.efi", .data = "else" });
    try testing.expectError(error.FileChanged, load(gpa, io, tmp.dir, "shim-grub"));
    for ([_][]const u8{ "", "{}", manifest[0 .. manifest.len / 2] }) |text| {
        try dir.writeFile(io, .{ .sub_path = manifest_name, .data = text });
        try testing.expectError(error.ManifestDamaged, load(gpa, io, tmp.dir, "shim-grub"));
    }
    try dir.writeFile(io, .{ .sub_path = manifest_name, .data = "{\"schema\":2}" });
    try testing.expectError(error.SchemaTooNew, load(gpa, io, tmp.dir, "shim-grub"));
}

test "names of sets and files are safe in paths" {
    for ([_][]const u8{ "ipxe", "shim-grub", "0" }) |name| try testing.expect(isSetName(name));
    for ([_][]const u8{ "", "-a", "A", "a/b", "..", &@as([33]u8, @splat('a')) }) |name|
        try testing.expect(!isSetName(name));
    for ([_][]const u8{ "", ".a", "a b", "a/b", "..", &@as([65]u8, @splat('a')) }) |name|
        try testing.expect(!isFileName(name));
}
