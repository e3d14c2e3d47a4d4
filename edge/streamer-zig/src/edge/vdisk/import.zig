//! `bootfarm-edge vdisk import`: makes a version out of an image, goes on with an import that was interrupted, or gives one up.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const host = @import("host");
const store_module = @import("store");
const arguments = @import("arguments.zig");
const boot_files = @import("boot_files.zig");
const cancel = @import("cancel.zig");
const command = @import("command.zig");
const open_store = @import("open_store.zig");
const output = @import("output.zig");
const Uuid = base.Uuid;

const Checkpoint = store_module.import_checkpoint.Checkpoint;
const Complaint = @import("../options.zig").Complaint;
const FdSource = store_module.image_source.FdSource;
const Import = store_module.import.Import;
const Manifest = store_module.Manifest;
const Size = output.Size;

const Options = struct {
    positional: ?[]const u8 = null,
    store: ?[]const u8 = null,
    name: ?[]const u8 = null,
    vdisk: ?Uuid = null,
    version: ?Uuid = null,
    number: ?u32 = null,
    parent: ?Uuid = null,
    kernel: ?[]const u8 = null,
    initrd: ?[]const u8 = null,
    cmdline: ?[]const u8 = null,
    no_boot_files: bool = false,
    pad: bool = false,
    @"resume": ?Uuid = null,
    abandon: ?Uuid = null,
    json: bool = false,
};

const Running = struct {
    call: *const command.Call,
    options: Options,
    opened: *open_store.OpenStore,
    line: output.ProgressLine,
};

pub fn run(call: *const command.Call) command.Error!u8 {
    const options = try arguments.parse(Options, call.rest, call.complaint);
    try check(&options, call.complaint);
    const gpa = std.heap.smp_allocator;
    var opened: open_store.OpenStore = undefined;
    try opened.open(gpa, options.store, call.complaint);
    defer opened.close(gpa);
    var change = try opened.lock("vdisk import", call.complaint);
    defer change.end();
    var running: Running = .{ .call = call, .options = options, .opened = &opened, .line = .init(options.json) };
    if (options.abandon) |id| return abandon(&running, id);
    cancel.listen();
    if (options.@"resume") |id| return proceed(&running, gpa, &change, id);
    return begin(&running, gpa, &change);
}

fn check(options: *const Options, complaint: *Complaint) command.Error!void {
    const modes = @as(u8, @intFromBool(options.@"resume" != null)) + @intFromBool(options.abandon != null);
    if (modes == 0 and options.positional == null)
        return complaint.set("vdisk import needs the image: a file, a block device, or - for standard input.", .{});
    if (modes == 2) return complaint.set("--resume and --abandon exclude each other.", .{});
    if (modes == 1 and (options.name != null or options.vdisk != null or options.version != null or options.number != null or
        options.parent != null or options.kernel != null or options.initrd != null or options.cmdline != null or options.pad))
        return complaint.set("An import goes on, or is given up, as it was begun: --resume and --abandon take --store alone.", .{});
    if (options.abandon != null and options.positional != null)
        return complaint.set("--abandon takes no image.", .{});
    if (options.name) |name| if (name.len == 0 or name.len > store_module.manifest.name_size_max)
        return complaint.set("--name has 1 to {d} bytes.", .{store_module.manifest.name_size_max});
    if (options.name) |name| for (name) |byte| if (std.ascii.isControl(byte))
        return complaint.set("--name is one line, without control characters.", .{});
    if (options.name == null and modes == 0 and options.parent == null)
        return complaint.set("vdisk import needs --name NAME, what people call the vDisk.", .{});
    if (options.kernel == null and (options.initrd != null or options.cmdline != null))
        return complaint.set("--initrd and --cmdline go with --kernel.", .{});
    if (options.kernel != null and options.no_boot_files)
        return complaint.set("--kernel and --no-boot-files exclude each other.", .{});
    for ([_]?Uuid{ options.vdisk, options.version, options.parent }) |id| if (id) |given| if (given.eql(.zero))
        return complaint.set("An id of zeros names nothing.", .{});
    if (!core.boot_policy.isCommandLine(options.cmdline orelse "")) return complaint.set(
        "--cmdline is one line of at most 1024 printable ASCII characters, without ${s}, the words ||, && and ;, and words that begin with #.",
        .{"{"},
    );
}

fn abandon(running: *Running, id: Uuid) command.Error!u8 {
    Checkpoint.remove(running.opened.on.files(), id) catch |err|
        return complainOfCheckpoint(running, id, err);
    var buffer: [160]u8 = undefined;
    const text = if (running.options.json)
        std.mem.print(&buffer, "{{\"abandoned\":\"{f}\"}}\n", .{id})
    else
        std.mem.print(&buffer, "gave up the import {f}; its room is free after bootfarm-edge vdisk gc\n", .{id});
    running.call.terminal.out(text catch unreachable);
    return 0;
}

fn complainOfCheckpoint(running: *Running, id: Uuid, problem: store_module.import_checkpoint.Error) command.Error {
    return running.call.complaint.set("The import {f} {s}.", .{ id, store_module.import_checkpoint.sentence(problem) });
}

fn begin(running: *Running, gpa: std.mem.Allocator, change: *store_module.store_dir.Change) command.Error!u8 {
    const options, const complaint = .{ &running.options, running.call.complaint };
    const path = options.positional.?;
    var source = try openSource(path, complaint);
    defer source.close();
    var wanted = try wantedOf(running, change, path);
    if (options.kernel != null) try boot_files.take(running.opened.on.files(), .{
        .kernel = options.kernel.?,
        .initrd = options.initrd,
        .command_line = options.cmdline orelse "",
    }, &wanted, complaint);
    var import = Import.begin(givenOf(running, gpa, change, &source), wanted) catch |err|
        return complainOf(running, path, err, 0, wanted.version);
    defer import.deinit();
    return finish(running, &import, path);
}

/// All that a new version is, but for what the source says.
fn wantedOf(running: *Running, change: *store_module.store_dir.Change, path: []const u8) command.Error!Checkpoint {
    const options, const complaint = .{ &running.options, running.call.complaint };
    const store = &running.opened.store;
    var wanted: Checkpoint = .{
        .version = options.version orelse randomId(),
        .vdisk = options.vdisk orelse .zero,
        .parent = options.parent orelse .zero,
        .number = 0,
        .path = @FieldType(Checkpoint, "path").fromSlice(path) catch return complaint.set("The path of the image is too long.", .{}),
        .pad = options.pad,
        .stamp = undefined,
        .source_size = undefined,
        .root_level = undefined,
    };
    if (options.name) |name| wanted.name = @FieldType(Checkpoint, "name").fromSlice(name) catch unreachable;
    if (options.parent) |parent_id| {
        const parent = store.manifestOf(parent_id) catch |err|
            return open_store.complainOfVersion(running.opened.path, parent_id, err, complaint);
        if (options.vdisk) |vdisk| if (!vdisk.eql(parent.vdisk))
            return complaint.set("The parent {f} is a version of the vDisk {f}, not of {f}.", .{ parent_id, parent.vdisk, vdisk });
        wanted.vdisk = parent.vdisk;
        if (options.name == null) wanted.name = parent.name;
        // It goes on booting as its parent does, unless something else is said.
        if (!options.no_boot_files) {
            wanted.kernel = parent.kernel;
            wanted.initrd = parent.initrd;
            wanted.command_line = parent.command_line;
        }
    }
    if (wanted.vdisk.eql(.zero)) wanted.vdisk = randomId();
    if (store.manifestOf(wanted.version)) |_| {
        return complaint.set("There is a version {f} already; a version never changes.", .{wanted.version});
    } else |err| if (err != error.NotFound)
        return open_store.complainOfVersion(running.opened.path, wanted.version, err, complaint);
    if (Checkpoint.read(running.opened.on.files(), wanted.version)) |_| return complaint.set(
        "The import {f} was begun already; go on with it by --resume {f}, or give it up by --abandon {f}.",
        .{ wanted.version, wanted.version, wanted.version },
    ) else |err| if (err != error.NoImport) return complainOfCheckpoint(running, wanted.version, err);
    wanted.number = options.number orelse store_module.import.nextNumber(change, wanted.vdisk) catch
        return complaint.set(
            "The versions of the store {s} cannot all be read; see bootfarm-edge vdisk list --store {s}.",
            .{ running.opened.path, running.opened.path },
        );
    return wanted;
}

fn randomId() Uuid {
    var random: [16]u8 = undefined;
    host.sys.random(&random);
    return .fromRandom(random);
}

fn proceed(running: *Running, gpa: std.mem.Allocator, change: *store_module.store_dir.Change, id: Uuid) command.Error!u8 {
    const complaint = running.call.complaint;
    const files = running.opened.on.files();
    if (running.opened.store.manifestOf(id)) |manifest| {
        // It was done, and ended before it could say so.
        Checkpoint.remove(files, id) catch |err| if (err != error.NoImport) return complainOfCheckpoint(running, id, err);
        return say(running, &manifest, null);
    } else |err| if (err != error.NotFound) return open_store.complainOfVersion(running.opened.path, id, err, complaint);
    const checkpoint = Checkpoint.read(files, id) catch |err| return complainOfCheckpoint(running, id, err);
    const path = running.options.positional orelse checkpoint.path.constSlice();
    var source = try openSource(path, complaint);
    defer source.close();
    var import = Import.proceed(givenOf(running, gpa, change, &source), checkpoint) catch |err|
        return complainOf(running, path, err, 0, id);
    defer import.deinit();
    return finish(running, &import, path);
}

fn openSource(path: []const u8, complaint: *Complaint) command.Error!FdSource {
    const opened = if (std.mem.eql(u8, path, "-")) FdSource.fromFd(0, &cancel.is_asked) else FdSource.open(path, &cancel.is_asked);
    return opened catch |err| complaint.set("{s} {s}.", .{
        if (std.mem.eql(u8, path, "-")) "Standard input" else path,
        store_module.image_source.sentence(err),
    });
}

fn givenOf(running: *Running, gpa: std.mem.Allocator, change: *store_module.store_dir.Change, source: *FdSource) Import.Given {
    return .{
        .gpa = gpa,
        .io = running.call.init.io,
        .change = change,
        .source = source.source(),
        .is_canceled = &cancel.is_asked,
        .watch = .{ .context = running, .progress = progress, .monotonicUs = host.sys.monotonicUs },
    };
}

fn progress(context: *anyopaque, done: *const store_module.import.Progress) void {
    const running: *Running = @ptrCast(@alignCast(context));
    running.line.say(.{ .position = done.position, .size = done.size });
}

fn finish(running: *Running, import: *Import, path: []const u8) command.Error!u8 {
    const id = import.checkpoint.version;
    running.line.begun_us = host.sys.monotonicUs();
    if (running.options.json) {
        var buffer: [128]u8 = undefined;
        running.call.terminal.out(std.mem.print(&buffer, "{{\"import\":\"{f}\",\"positionBytes\":{d}}}\n", .{
            id,
            import.checkpoint.position,
        }) catch unreachable);
    }
    const manifest = import.run() catch |err| {
        running.line.end();
        if (err == error.Canceled) return sayInterrupted(running, id);
        if (isHopeless(err)) Checkpoint.remove(running.opened.on.files(), id) catch {};
        return complainOf(running, path, err, import.failed_at, id);
    };
    running.line.end();
    return say(running, &manifest, &import.done);
}

fn sayInterrupted(running: *Running, id: Uuid) u8 {
    host.speak.line(
        "The import was ended; go on with bootfarm-edge vdisk import --store {s} --resume {f}, or give it up with --abandon {f}.",
        .{ running.opened.path, id, id },
    );
    return command.exit_interrupted;
}

/// The image that was begun is not there any more, or never was one.
fn isHopeless(problem: store_module.import.Error) bool {
    return switch (problem) {
        error.SourceChanged,
        error.SourceGrew,
        error.SourceShrank,
        error.NotSectors,
        error.Empty,
        error.TooLarge,
        error.OtherSize,
        => true,
        else => false,
    };
}

fn say(running: *Running, manifest: *const Manifest, done: ?*const store_module.import.Progress) command.Error!u8 {
    var text: [8192]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&text);
    write(running, &writer, manifest, done) catch return error.OutOfMemory;
    running.call.terminal.out(writer.buffered());
    return 0;
}

fn write(
    running: *Running,
    writer: *std.Io.Writer,
    manifest: *const Manifest,
    done: ?*const store_module.import.Progress,
) std.Io.Writer.Error!void {
    if (running.options.json) {
        var json: std.json.Stringify = .{ .writer = writer };
        try output.writeVersion(&json, manifest);
        return writer.writeByte('\n');
    }
    try writer.print("imported version {f}, number {d} of vDisk {f}: {f}\n", .{
        manifest.version,
        manifest.number,
        manifest.vdisk,
        Size{ .bytes = manifest.disk_size },
    });
    const figures = done orelse return;
    try writer.print("  {f} written, {f} shared with the parent, {f} of zeros\n", .{
        Size{ .bytes = figures.written_bytes },
        Size{ .bytes = figures.shared_bytes },
        Size{ .bytes = figures.zero_bytes },
    });
}

fn complainOf(
    running: *Running,
    path: []const u8,
    problem: store_module.import.Error,
    at: u64,
    id: Uuid,
) command.Error {
    const complaint, const store = .{ running.call.complaint, running.opened.path };
    return switch (problem) {
        error.OutOfMemory, error.NoThreads => error.OutOfMemory,
        error.Canceled => unreachable,
        error.ReadFailed => complaint.set(
            "{s} or the store {s} cannot be read (at byte {d} of the image): the system reports an error. When it can be read, go on with " ++
                "--resume {f}, or give it up with --abandon {f}.",
            .{ path, store, at, id, id },
        ),
        error.SourceShrank => complaint.set("{s} shrank while it was read, to {d} bytes; import it again when nobody writes it.", .{ path, at }),
        error.SourceGrew => complaint.set("{s} grew while it was read, to {d} bytes; import it again when nobody writes it.", .{ path, at }),
        error.SourceChanged => complaint.set(
            "{s} is not what it was when the import was begun: it was changed, or is another image; give up the import {f} with --abandon, and import it anew.",
            .{ path, id },
        ),
        error.NotSectors => complaint.set(
            "{s} is not a disk image: its size is not a multiple of 512 bytes. --pad fills its end up with zeros.",
            .{path},
        ),
        error.Empty => complaint.set("{s} is empty.", .{path}),
        error.TooLarge => complaint.set("{s} is larger than a vDisk can be: 4 PiB at most.", .{path}),
        error.OtherSize => complaint.set("{s} has another size than its parent; an update has the size of what it is made from.", .{path}),
        error.ParentMissing => complaint.set(
            "The parent of the import {f} is not in the store {s}; give it up with --abandon.",
            .{ id, store },
        ),
        error.NoSpace => complaint.set(
            "The disk of the store {s} is full. Free some room and go on with --resume {f}, or give it up with --abandon {f}.",
            .{ store, id, id },
        ),
        error.Damaged,
        error.NotAManifest,
        error.WrongSignature,
        error.Malformed,
        error.OtherStore,
        error.OtherName,
        => complaint.set("A version in the store {s} is damaged; see bootfarm-edge vdisk list --store {s}.", .{ store, store }),
        else => |other| open_store.complainOf(store, other, complaint),
    };
}
