//! Checks what the edge reads from its disks: boot programs, the disk or the store, and the free
//! space for what it writes.

const std = @import("std");
const Io = std.Io;
const base = @import("base");
const core = @import("core");
const host = @import("host");
const store = @import("store");
const wire = @import("wire");
const options_module = @import("../options.zig");
const initramfs_build = @import("../initramfs/build.zig");
const Findings = @import("findings.zig");
const SourceImage = @import("../source_image.zig");

const StoreFile = store.StoreFile;

/// Enough for reports, leases and captures of a large site.
const free_size_wanted = 1 << 30;
const free_size_min = 64 << 20;

pub fn checkBootFiles(
    findings: *Findings,
    io: Io,
    options: *const options_module.Serve,
) error{OutOfMemory}!void {
    const remedy = "Import them from this system's packages: bootfarm-edge boot-files import.";
    const path = options.boot_files orelse return findings.report(
        .warning,
        .boot_files,
        "No --boot-files DIR is given: only machines whose firmware is iPXE can boot.",
        remedy,
    );
    const files = host.BootFiles.load(findings.arena, io, path) catch |err| return findings.report(
        .problem,
        .boot_files,
        switch (err) {
            error.OutOfMemory => return error.OutOfMemory,
            error.DirectoryNotReadable => try findings.print(
                "{s} cannot be read as a directory.",
                .{path},
            ),
            else => try findings.print("A boot program in {s} cannot be read: {t}.", .{
                path, err,
            }),
        },
        "Check the path and its permissions.",
    );
    for (files.left_out) |*set| try findings.report(
        .problem,
        .boot_files,
        try findings.print("The boot program set {s}/{s} cannot be used: it {s}.", .{
            path, set.name, host.program_set.sentence(set.why),
        }),
        "Import it again, or remove it.",
    );
    const kinds = [_]struct { arch: wire.dhcp.ClientArch, machines: []const u8 }{
        .{ .arch = .bios, .machines = "BIOS machines" },
        .{ .arch = .uefi_x64, .machines = "UEFI machines (x86-64)" },
        .{ .arch = .uefi_arm64, .machines = "UEFI machines (ARM)" },
    };
    for (kinds) |kind| {
        const set, const name = for (files.sets) |*set| {
            if (set.first.of(kind.arch)) |name| break .{ set.name, name };
        } else {
            try findings.report(
                .warning,
                .boot_files,
                try findings.print("{s} cannot boot: there is no program for them in {s}.", .{
                    kind.machines, path,
                }),
                remedy,
            );
            continue;
        };
        try findings.ok(.boot_files, "{s} get {s} of the set {s}, unless another one is chosen.", .{
            kind.machines, name, set,
        });
    }
}

pub fn checkDisk(
    findings: *Findings,
    options: *const options_module.Serve,
) error{OutOfMemory}!void {
    const NamedFile = struct { path: ?[]const u8, kind: store.store_file.Kind };
    const named = [_]NamedFile{
        .{ .path = options.vdisk, .kind = .disk },
        .{ .path = options.kernel, .kind = .plain },
        .{ .path = options.initrd, .kind = .plain },
    };
    for (named) |one| {
        const path = one.path orelse continue;
        var file = StoreFile.open(path, one.kind) catch |problem| {
            try findings.report(
                .problem,
                .vdisk,
                try findings.print("{s} {s}.", .{
                    path, store.store_file.sentence(problem, one.kind),
                }),
                "Check the path and its permissions.",
            );
            continue;
        };
        defer file.close();
        if (one.kind == .disk) if (SourceImage.containerOf(&file)) |format| {
            try findings.report(
                .problem,
                .vdisk,
                try findings.print("{s} is {s}, not a raw disk.", .{ path, format.name() }),
                "Import it into a store (bootfarm-edge vdisk import), or convert it to raw.",
            );
            continue;
        };
        if (one.kind == .disk) if (host.disk_check.findShortage(&file.source())) |shortage| {
            try findings.report(
                .problem,
                .vdisk,
                try findings.print("{s} is smaller than its contents: {f}.", .{ path, shortage }),
                "Import the whole image again.",
            );
            continue;
        };
        try findings.ok(.vdisk, "{s} can be read: {d} MiB.", .{ path, file.size >> 20 });
    }
}

/// `state` is the last one that the control plane sent.
pub fn checkStore(
    findings: *Findings,
    io: Io,
    options: *const options_module.Serve,
    state: *const core.uplink.desired_state.DesiredState,
) error{OutOfMemory}!void {
    const path = options.store orelse try findings.print("{s}/store", .{options.data.?});
    var dir = Io.Dir.cwd().openDir(io, path, .{}) catch return findings.report(
        .problem,
        .store,
        try findings.print("The store {s} cannot be read.", .{path}),
        "Check that its disk is mounted, and its permissions.",
    );
    defer dir.close(io);
    var whole: u32 = 0;
    for (state.vdisks) |vdisk| for (vdisk.versions) |version| {
        // The running edge checks those that are in the store.
        if (version.manifest != null or version.layerAboveVersionId != null) continue;
        const files = [_]?[]const u8{ version.diskPath, version.kernelPath, version.initrdPath };
        var is_whole = true;
        for (files, 0..) |maybe, index| {
            const name = maybe orelse continue;
            const kind: store.store_file.Kind = if (index == 0) .disk else .plain;
            var file = StoreFile.openBelow(dir.handle, name, kind) catch |problem| {
                is_whole = false;
                try findings.report(
                    .problem,
                    .store,
                    try findings.print("{s}/{s} {s}.", .{
                        path, name, store.store_file.sentence(problem, kind),
                    }),
                    "Copy the version's files there, or check their permissions.",
                );
                continue;
            };
            defer file.close();
            if (index > 0 or file.size == version.sizeBytes) continue;
            is_whole = false;
            try findings.report(
                .problem,
                .store,
                try findings.print("{s}/{s} has {d} bytes instead of {d}.", .{
                    path, name, file.size, version.sizeBytes,
                }),
                "Copy it again: it is incomplete.",
            );
        }
        whole += @intFromBool(is_whole);
    };
    if (whole > 0) try findings.ok(.store, "{d} versions are complete in {s}.", .{ whole, path });
    try checkReadThrough(findings, io, options.data.?);
}

/// Checks that the edge can take an image, also before it has a state.
pub fn checkImports(
    findings: *Findings,
    io: Io,
    options: *const options_module.Serve,
) error{OutOfMemory}!void {
    const path = options.store orelse try findings.print("{s}/store", .{options.data.?});
    if (Io.Dir.cwd().access(io, try findings.print("{s}/bootfarm-store", .{path}), .{}))
        try findings.ok(.store, "Images can be imported into the store {s}.", .{path})
    else |_|
        try findings.report(
            .warning,
            .store,
            try findings.print("There is no store in {s}: jobs of the control plane wait.", .{
                path,
            }),
            try findings.print(
                "As the edge's user: bootfarm-edge vdisk init --beside-files --store {s}",
                .{path},
            ),
        );
    const problem = try initramfs_build.ownBusyboxProblem(findings.arena, io) orelse return;
    try findings.report(
        .warning,
        .store,
        try findings.print(
            "Images that were not prepared, and have no static busybox, cannot be imported: {s}.",
            .{problem},
        ),
        "Install the package busybox-static.",
    );
}

/// Reports what the running edge found when it last verified the store.
fn checkReadThrough(findings: *Findings, io: Io, data: []const u8) error{OutOfMemory}!void {
    const path = try findings.print("{s}/" ++ host.StoreWorker.checks_name, .{data});
    const text = Io.Dir.cwd().readFileAlloc(io, path, findings.arena, .limited(1 << 20)) catch
        return;
    const Checks = []const core.uplink.store_inventory.Check;
    const checks = core.uplink.message.parse(Checks, findings.arena, text) catch return;
    var right: u32 = 0;
    for (checks) |*check| {
        right += @intFromBool(!check.isDamaged);
        if (check.isDamaged) try findings.report(
            .problem,
            .store,
            try findings.print("The version {f} in the store was found damaged.", .{check.id}),
            "Restore it from another edge of the site, or import it again.",
        );
    }
    if (right > 0) try findings.ok(.store, "{d} versions of the store were verified.", .{right});
}

pub fn checkSpace(findings: *Findings, path: []const u8) error{OutOfMemory}!void {
    const terminated = try findings.arena.dupeSentinel(u8, path, 0);
    const space = host.file_system.spaceAt(terminated) catch return findings.report(
        .problem,
        .disk_space,
        try findings.print("{s} does not exist or cannot be read.", .{path}),
        "Check the path and its permissions.",
    );
    const free = space.available_bytes;
    const text = try findings.print("{s} has {d} MiB free.", .{ path, free >> 20 });
    if (free < free_size_min)
        return findings.report(
            .problem,
            .disk_space,
            text,
            "Free some space: reports and boots in progress cannot be kept.",
        );
    if (free < free_size_wanted)
        return findings.report(
            .warning,
            .disk_space,
            text,
            "Free some space before a boot storm: 1 GiB is plenty.",
        );
    try findings.ok(.disk_space, "{s}", .{text});
}
