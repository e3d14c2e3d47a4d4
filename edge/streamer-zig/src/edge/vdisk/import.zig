//! `bootfarm-edge vdisk import`: makes a version from an image, continues an interrupted import, or
//! gives one up.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const boot_files = @import("boot_files.zig");
const cancel = @import("cancel.zig");
const Call = @import("subcommand.zig");
const empty_disk = @import("source/empty_disk.zig");
const OpenDifference = @import("difference/open_difference.zig");
const output = @import("output.zig");
const SourceImage = @import("../source_image.zig");
const store_paths = @import("store_paths.zig");
const Uuid = base.Uuid;

const Change = store_module.store_dir.Change;
const Checkpoint = store_module.import_checkpoint.Checkpoint;
const Import = store_module.import.Import;
const Manifest = store_module.Manifest;
const Size = output.Size;

pub const Options = struct {
    positional: ?[]const u8 = null,
    name: ?[]const u8 = null,
    note: ?[]const u8 = null,
    vdisk: ?Uuid = null,
    version: ?Uuid = null,
    number: ?u32 = null,
    parent: ?Uuid = null,
    boot: boot_files.Options = .{},
    source: SourceImage.Options = .{},
    pad: bool = false,
    /// Root that a difference must result in, 64 hexadecimal digits.
    root: ?[]const u8 = null,
    @"resume": ?Uuid = null,
    abandon: ?Uuid = null,
    /// For programs that repeat an interrupted command: a finished import counts as done, an
    /// interrupted one continues, and one that fails is given up.
    again: bool = false,
};

/// How long the end of an import waits for other processes that change the store, such as a garbage
/// collection.
const wait_limit_us = 10 * std.time.us_per_min;
const wait_step_ms = 200;

const ImportRun = struct {
    call: *const Call,
    options: *const Options,
    line: output.ProgressLine,
    /// The right to change the store; not held while the image is read.
    change: ?Change,
    /// The image, while it is open.
    source: ?*SourceImage = null,
    /// In place of an image.
    difference: ?*OpenDifference = null,

    fn letGo(running: *ImportRun) void {
        if (running.change) |*change| change.end();
        running.change = null;
    }
};

pub fn run(call: *const Call, options: *const Options) Call.Error!u8 {
    try check(call, options);
    const wanted_boot: boot_files.BootChoice = try .of(call, &options.boot);
    var running: ImportRun = .{
        .call = call,
        .options = options,
        .line = .init(call.is_json),
        .change = try call.lock(),
    };
    defer running.letGo();
    if (options.abandon) |id| return abandon(&running, id);
    cancel.listen();
    if (options.@"resume") |id| return proceed(&running, id);
    if (!options.again) return begin(&running, &wanted_boot);
    return beginAgain(&running, &wanted_boot);
}

fn check(call: *const Call, options: *const Options) Call.Error!void {
    const modes =
        @as(u8, @intFromBool(options.@"resume" != null)) + @intFromBool(options.abandon != null);
    const is_empty = options.source.empty != null;
    if (modes == 0 and options.positional == null and !is_empty)
        return call.fail(
            "vdisk import needs the image: a file, a block device, or - for standard input; or --empty SIZE for none.",
            .{},
        );
    const is_of_image = options.positional != null or options.source.format != null or
        options.source.parents != null or options.source.size != null or
        options.source.platform != null or options.parent != null;
    if (is_empty and is_of_image) return call.fail(
        "--empty makes a disk of zeros: it takes no FILE, no --parent, and no options of an image.",
        .{},
    );
    if (modes == 2) return call.fail("--resume and --abandon exclude each other.", .{});
    const is_described = options.name != null or options.note != null or
        options.vdisk != null or options.version != null or options.number != null or
        options.parent != null;
    if (modes == 1 and (is_described or options.boot.isChosen() or options.pad or options.again))
        return call.fail(
            "--resume and --abandon take --store, --format, --parents, --size and --platform alone, or --empty: an import continues with the options that it began with.",
            .{},
        );
    if (options.abandon != null and (options.positional != null or options.source.isChosen()))
        return call.fail("--abandon takes no image.", .{});
    if (options.again and options.version == null) return call.fail(
        "--again goes with --version ID, which identifies a finished import.",
        .{},
    );
    if (options.name) |name| if (name.len == 0 or name.len > store_module.manifest.name_size_max)
        return call.fail("--name has 1 to {d} bytes.", .{store_module.manifest.name_size_max});
    if (options.name) |name| for (name) |byte| if (std.ascii.isControl(byte))
        return call.fail("--name is one line, without control characters.", .{});
    if (options.note) |note| if (note.len > store_module.manifest.note_size_max)
        return call.fail("--note has at most {d} bytes.", .{store_module.manifest.note_size_max});
    if (options.note) |note| for (note) |byte| if (std.ascii.isControl(byte))
        return call.fail("--note is one line, without control characters.", .{});
    for ([_]?Uuid{ options.vdisk, options.version, options.parent }) |id|
        if (id) |given| if (given.eql(.zero))
            return call.fail("The id is all zeros; give a real one.", .{});
}

fn abandon(running: *ImportRun, id: Uuid) Call.Error!u8 {
    try checkIdle(running.call, id);
    Checkpoint.remove(running.call.files(), id) catch |err|
        return explainCheckpoint(running, id, err);
    running.call.print(
        .{ .abandoned = id },
        "abandoned the import {f}; bootfarm-edge vdisk gc frees its space",
        .{id},
    );
    return 0;
}

/// Checks, under the store's lock, that no process reads the image of this import.
pub fn checkIdle(call: *const Call, id: Uuid) Call.Error!void {
    const is_running = store_module.import_checkpoint.isRunning(call.files(), id) catch |err|
        return call.failStore(err);
    if (is_running) return failRunning(call, id);
}

fn failRunning(call: *const Call, id: Uuid) error{Busy} {
    return call.failBusy(
        "The import {f} is running in another process; wait until it ends, or stop it first.",
        .{id},
    );
}

fn explainCheckpoint(
    running: *ImportRun,
    id: Uuid,
    problem: store_module.import_checkpoint.Error,
) Call.Error {
    return running.call.complaint.set("The import {f} {s}.", .{
        id, store_module.import_checkpoint.sentence(problem),
    });
}

/// Part of the import, or all of it, may already be done.
fn beginAgain(running: *ImportRun, wanted_boot: *const boot_files.BootChoice) Call.Error!u8 {
    const id = running.options.version.?;
    const files = running.call.files();
    try checkIdle(running.call, id);
    if (try madeBefore(running, id)) |manifest| return printMade(running, &manifest, null);
    const is_begun = if (Checkpoint.read(files, id)) |_| true else |err| switch (err) {
        error.NoImport => false,
        error.Damaged, error.TooNew => blk: {
            Checkpoint.remove(files, id) catch |why| return explainCheckpoint(running, id, why);
            break :blk false;
        },
        else => return explainCheckpoint(running, id, err),
    };
    const result = if (is_begun) proceed(running, id) else begin(running, wanted_boot);
    return result catch |err| {
        // What was read is needed when the store is free.
        if (err != error.Busy) Checkpoint.remove(files, id) catch {};
        return err;
    };
}

/// Finds an import that was finished by a process which ended before it could report it.
fn madeBefore(running: *ImportRun, id: Uuid) Call.Error!?Manifest {
    const manifest = running.call.store().manifestOf(id) catch |err|
        return if (err == error.NotFound) null else running.call.failVersion(id, err);
    if (running.options.vdisk) |vdisk|
        if (!manifest.vdisk.eql(vdisk)) return failExists(running, id);
    try OpenDifference.checkRoot(running.call, running.options.root, &manifest.root.hash);
    Checkpoint.remove(running.call.files(), id) catch |err| if (err != error.NoImport)
        return explainCheckpoint(running, id, err);
    return manifest;
}

fn failExists(running: *ImportRun, id: Uuid) error{Wrong} {
    return running.call.fail("The version {f} already exists; a version never changes.", .{id});
}

fn begin(running: *ImportRun, wanted_boot: *const boot_files.BootChoice) Call.Error!u8 {
    const options, const call = .{ running.options, running.call };
    const path = options.positional orelse empty_disk.name;
    var difference: OpenDifference = undefined;
    if (options.source.empty == null and
        try difference.open(call, path, options.boot.in_store))
    {
        defer difference.close(call.gpa);
        running.difference = &difference;
        return beginDifference(running, &difference);
    }
    if (options.name == null and options.parent == null and options.vdisk == null) return call.fail(
        "vdisk import needs --name NAME, the name of the vDisk for people, or --vdisk ID.",
        .{},
    );
    if (options.root != null)
        return call.fail("--root is for a difference of versions, and {s} is none.", .{path});
    var source: SourceImage = undefined;
    try store_paths.openAny(call, &source, &.{
        .path = path,
        .in_store = options.boot.in_store,
        .options = &options.source,
        .needs = .{ .kernel = wanted_boot.needsDisk() },
        .before_unpacking = .{ .context = running, .run = letOthersChange },
    });
    defer source.close();
    running.source = &source;
    if (running.change == null) running.change = try call.lock();
    const change = &running.change.?;
    if (options.source.empty != null and wanted_boot.needsDisk()) return call.fail(
        "There is no kernel on an empty disk: give --boot-files-of ID, or --kernel, --initrd and --cmdline, or add --no-boot-files.",
        .{},
    );
    const parent: ?Manifest = if (options.parent) |id| call.store().manifestOf(id) catch |err|
        return call.failVersion(id, err) else null;
    var wanted = try wantedOf(running, change, path, if (parent) |*known| known else null);
    const disk = source.blockSource();
    if (disk == null and wanted_boot.needsDisk()) return call.fail(
        "Standard input is read once, and only after it is known what the version boots with: give --kernel, --initrd and --cmdline, or add " ++
            "--parent-boot-files or --no-boot-files.",
        .{},
    );
    const boot = boot_files.take(
        call,
        wanted_boot,
        if (parent) |*known| known else null,
        if (disk) |*found| found else null,
    ) catch |err| return source.explainRead() orelse err;
    wanted.kernel = boot.kernel;
    wanted.initrd = boot.initrd;
    wanted.command_line = boot.command_line;
    var import = Import.begin(givenOf(running), change, wanted) catch |err|
        return explain(running, path, err, 0, wanted.version);
    defer import.deinit();
    return finish(running, &import, path);
}

fn beginDifference(running: *ImportRun, difference: *OpenDifference) Call.Error!u8 {
    const options, const call = .{ running.options, running.call };
    try difference.checkOptions(call, options);
    const header = &difference.difference.header;
    try checkNew(running, header.version);
    try difference.checkBase(call);
    const wanted = try difference.wanted(call);
    try difference.takeBootFiles(call);
    var import = Import.begin(givenOf(running), &running.change.?, wanted) catch |err|
        return explain(running, difference.path, err, 0, header.version);
    defer import.deinit();
    return finish(running, &import, difference.path);
}

/// Unpacking a container image takes a while, in which others may change the store.
fn letOthersChange(context: *anyopaque) void {
    const running: *ImportRun = @ptrCast(@alignCast(context));
    running.letGo();
}

/// Returns everything about the new version except what the source determines and what it boots
/// with.
fn wantedOf(
    running: *ImportRun,
    change: *Change,
    path: []const u8,
    parent: ?*const Manifest,
) Call.Error!Checkpoint {
    const options, const call = .{ running.options, running.call };
    var wanted: Checkpoint = .{
        .version = options.version orelse Call.randomId(),
        .vdisk = options.vdisk orelse .zero,
        .parent = options.parent orelse .zero,
        .number = 0,
        .path = @FieldType(Checkpoint, "path").fromSlice(path) catch
            return call.fail("The path of the image is too long.", .{}),
        .pad = options.pad,
        .stamp = undefined,
        .source_size = undefined,
        .root_level = undefined,
    };
    if (options.name) |name|
        wanted.name = @FieldType(Checkpoint, "name").fromSlice(name) catch unreachable;
    if (options.note) |note|
        wanted.note = @FieldType(Checkpoint, "note").fromSlice(note) catch unreachable;
    if (parent) |known| {
        if (options.vdisk) |vdisk| if (!vdisk.eql(known.vdisk))
            return call.fail("The parent {f} is a version of the vDisk {f}, not of {f}.", .{
                known.version, known.vdisk, vdisk,
            });
        wanted.vdisk = known.vdisk;
        if (options.name == null) wanted.name = known.name;
    }
    if (wanted.vdisk.eql(.zero)) wanted.vdisk = Call.randomId();
    try checkNew(running, wanted.version);
    wanted.number = options.number orelse store_module.import.nextNumber(change, wanted.vdisk) catch
        return call.fail(
            "Some versions of the store {s} cannot be read (bootfarm-edge vdisk list --store {s} names them): give --number N.",
            .{ call.path(), call.path() },
        );
    return wanted;
}

/// Neither the version nor an import of it is in the store.
fn checkNew(running: *ImportRun, id: Uuid) Call.Error!void {
    const call = running.call;
    if (call.store().manifestOf(id)) |_|
        return failExists(running, id)
    else |err| if (err != error.NotFound) return call.failVersion(id, err);
    if (Checkpoint.read(call.files(), id)) |_| return call.fail(
        "The import {f} was interrupted; continue it with --resume {f}, or abandon it with --abandon {f}.",
        .{ id, id, id },
    ) else |err| if (err != error.NoImport) return explainCheckpoint(running, id, err);
}

fn proceed(running: *ImportRun, id: Uuid) Call.Error!u8 {
    const call = running.call;
    try checkIdle(call, id);
    if (try madeBefore(running, id)) |manifest| return printMade(running, &manifest, null);
    const checkpoint =
        Checkpoint.read(call.files(), id) catch |err| return explainCheckpoint(running, id, err);
    const path = running.options.positional orelse checkpoint.path.constSlice();
    const options = running.options;
    var difference: OpenDifference = undefined;
    if (checkpoint.difference) |known| {
        try OpenDifference.checkRoot(call, options.root, &known.root);
        if (!try difference.open(call, path, options.boot.in_store))
            return explain(running, path, error.SourceChanged, 0, id);
        running.difference = &difference;
    }
    defer if (running.difference != null) difference.close(call.gpa);
    if (running.difference != null) return proceedFrom(running, path, &checkpoint);
    var source: SourceImage = undefined;
    try store_paths.openAny(call, &source, &.{
        .path = path,
        .in_store = options.boot.in_store,
        .options = &options.source,
        .size = checkpoint.source_size,
        .before_unpacking = .{ .context = running, .run = letOthersChange },
    });
    defer source.close();
    running.source = &source;
    if (running.change == null) running.change = try call.lock();
    return proceedFrom(running, path, &checkpoint);
}

fn proceedFrom(
    running: *ImportRun,
    path: []const u8,
    checkpoint: *const Checkpoint,
) Call.Error!u8 {
    var import =
        Import.proceed(givenOf(running), &running.change.?, checkpoint.*) catch |err|
            return explain(running, path, err, 0, checkpoint.version);
    defer import.deinit();
    return finish(running, &import, path);
}

fn givenOf(running: *ImportRun) Import.Options {
    return .{
        .gpa = running.call.gpa,
        .io = running.call.init.io,
        .source = if (running.difference) |given|
            given.difference.source()
        else
            running.source.?.source(&running.options.source),
        .is_canceled = &cancel.is_asked,
        .watch = .{ .context = running, .progress = progress, .monotonicUs = host.sys.monotonicUs },
    };
}

fn progress(context: *anyopaque, done: *const store_module.import.Progress) void {
    const running: *ImportRun = @ptrCast(@alignCast(context));
    running.line.update(.{ .position = done.position, .size = done.size });
}

fn finish(running: *ImportRun, import: *Import, path: []const u8) Call.Error!u8 {
    const id = import.checkpoint.version;
    running.line.started_us = host.sys.monotonicUs();
    if (running.call.is_json)
        running.call.print(.{ .import = id, .positionBytes = import.checkpoint.position }, "", .{});
    // A large image takes hours: others change the store in the meantime.
    running.letGo();
    const is_read = import.read();
    running.line.end();
    is_read catch |err| return explainEnd(running, import, path, err);
    if (!try takeLock(running, import)) return explainInterruption(running, id);
    const manifest =
        import.finish(&running.change.?) catch |err| return explainEnd(running, import, path, err);
    return printMade(running, &manifest, &import.done);
}

fn explainEnd(
    running: *ImportRun,
    import: *const Import,
    path: []const u8,
    problem: store_module.import.Error,
) Call.Error!u8 {
    const id = import.checkpoint.version;
    if (problem == error.Canceled) return explainInterruption(running, id);
    const is_format = problem == error.ReadFailed and explainRead(running) != null;
    if (is_format or isHopeless(problem)) Checkpoint.remove(running.call.files(), id) catch {};
    return explain(running, path, problem, import.failed_at, id);
}

/// Waits for a process that changes the store. Returns false if a signal ended the wait.
fn takeLock(running: *ImportRun, import: *const Import) Call.Error!bool {
    const call = running.call;
    // A caller that repeats the command tries again by itself and is told who has the store. Other
    // sources would have to be read again.
    const limit_us: u64 =
        if (running.options.again and import.checkpoint.stamp.isProof()) 0 else wait_limit_us;
    const started_us = host.sys.monotonicUs();
    var is_reported = false;
    while (!cancel.is_asked.load(.monotonic)) {
        running.change = call.lockNow() catch |err| {
            if (err != error.Busy) return err;
            if (host.sys.monotonicUs() - started_us >= limit_us)
                return failAtEnd(call, import.checkpoint.version);
            if (!is_reported)
                host.log.info(
                    "The image was read; the version is made when other processes release the store. {s}",
                    .{call.complaint.text()},
                );
            is_reported = true;
            call.init.io.sleep(.fromMilliseconds(wait_step_ms), .awake) catch {};
            continue;
        };
        return true;
    }
    return false;
}

/// The complaint names the process that has the store.
fn failAtEnd(call: *const Call, id: Uuid) error{Busy} {
    const who = call.complaint.*;
    return call.failBusy(
        "The image was read, but its version is not made yet. {s} Then --resume {f} makes it.",
        .{ who.text(), id },
    );
}

fn explainInterruption(running: *ImportRun, id: Uuid) u8 {
    host.log.info(
        "The import was interrupted; continue it with bootfarm-edge vdisk import --store {s} --resume {f}, or abandon it with --abandon {f}.",
        .{ running.call.path(), id, id },
    );
    return Call.exit_interrupted;
}

/// Returns whether the image no longer exists or never was one.
fn isHopeless(problem: store_module.import.Error) bool {
    return switch (problem) {
        error.SourceChanged,
        error.SourceGrew,
        error.SourceShrank,
        error.NotSectors,
        error.Empty,
        error.TooLarge,
        error.OtherSize,
        error.OtherRoot,
        error.OtherBase,
        => true,
        else => false,
    };
}

fn printMade(
    running: *ImportRun,
    manifest: *const Manifest,
    done: ?*const store_module.import.Progress,
) u8 {
    const call = running.call;
    // In front: the version is the last line.
    if (call.is_json) if (done) |sums| call.print(.{
        .writtenBytes = sums.written_bytes,
        .sharedBytes = sums.shared_bytes,
        .zeroBytes = sums.zero_bytes,
    }, "", .{});
    call.print(
        output.Version{ .manifest = manifest },
        "imported version {f}, number {d} of vDisk {f}: {f}",
        .{
            manifest.version,
            manifest.number,
            manifest.vdisk,
            Size{ .bytes = manifest.disk_size },
        },
    );
    const figures = done orelse return 0;
    if (!call.is_json) call.print(.{}, "  {f} written, {f} shared with the parent, {f} of zeros", .{
        Size{ .bytes = figures.written_bytes },
        Size{ .bytes = figures.shared_bytes },
        Size{ .bytes = figures.zero_bytes },
    });
    return 0;
}

const unreadable =
    "{s} or the store {s} cannot be read (at byte {d} of the image): the system reports an error.";

/// Returns whether there is a checkpoint that nobody is about to remove: the import can continue.
fn isKept(running: *const ImportRun, id: Uuid) bool {
    if (running.options.again) return false;
    _ = Checkpoint.read(running.call.files(), id) catch return false;
    return true;
}

/// A failed job leaves nothing to continue or to abandon, and who reads this gives no options.
fn sentenceOfJob(problem: store_module.import.Error) ?[]const u8 {
    return switch (problem) {
        error.SourceChanged => "was replaced while it was read: import it again.",
        error.NotSectors => "is not a disk image: its size is not a multiple of 512 bytes.",
        error.ParentMissing => "cannot be imported here: the parent is not in the store.",
        else => null,
    };
}

/// What the image's format knows of the problem, or what a caller without options can do.
fn explainedBySource(
    running: *ImportRun,
    path: []const u8,
    problem: store_module.import.Error,
) ?Call.Error {
    if (problem == error.ReadFailed) if (explainRead(running)) |explained| return explained;
    if (running.difference) |given| if (given.explain(running.call, problem)) |explained|
        return explained;
    if (!running.options.again) return null;
    const sentence = sentenceOfJob(problem) orelse return null;
    return running.call.complaint.set("{s} {s}", .{ path, sentence });
}

fn explainRead(running: *ImportRun) ?Call.Error {
    if (running.difference) |given| return given.explainRead(running.call);
    return if (running.source) |image| image.explainRead() else null;
}

fn explain(
    running: *ImportRun,
    path: []const u8,
    problem: store_module.import.Error,
    at: u64,
    id: Uuid,
) Call.Error {
    const complaint, const store = .{ running.call.complaint, running.call.path() };
    if (explainedBySource(running, path, problem)) |explained| return explained;
    return switch (problem) {
        error.OutOfMemory, error.NoThreads => error.OutOfMemory,
        error.Canceled, error.OtherBase, error.OtherRoot => unreachable,
        error.InUse => failRunning(running.call, id),
        error.ReadFailed => if (isKept(running, id)) complaint.set(
            unreadable ++
                " When it can be read, continue with --resume {f}, or abandon it with --abandon {f}.",
            .{ path, store, at, id, id },
        ) else complaint.set(unreadable ++
            " When it can be read, import the image again.", .{ path, store, at }),
        error.SourceShrank => complaint.set(
            "{s} shrank to {d} bytes while it was read; import it again when nobody writes to it.",
            .{ path, at },
        ),
        error.SourceGrew => complaint.set(
            "{s} grew to {d} bytes while it was read; import it again when nobody writes to it.",
            .{ path, at },
        ),
        error.SourceChanged => complaint.set(
            "{s} has changed since the import started, or is another image; abandon the import with --abandon {f}, and import the image again.",
            .{ path, id },
        ),
        error.NotSectors => complaint.set(
            "{s} is not a disk image: its size is not a multiple of 512 bytes. --pad fills its end with zeros.",
            .{path},
        ),
        error.Empty => complaint.set("{s} is empty.", .{path}),
        error.TooLarge => complaint.set(
            "{s} is larger than a vDisk can be: 4 PiB at most.",
            .{path},
        ),
        error.OtherSize => complaint.set(
            "{s} and its parent differ in size; an update has the size of its parent.",
            .{path},
        ),
        error.ParentMissing => complaint.set(
            "The parent of the import {f} is not in the store {s}; abandon it with --abandon.",
            .{ id, store },
        ),
        error.NoSpace => if (isKept(running, id)) complaint.set(
            "The disk of the store {s} is full. Free some space and continue with --resume {f}, or abandon it with --abandon {f}.",
            .{ store, id, id },
        ) else complaint.set(
            "The disk of the store {s} is full, and nothing of the import is kept. Free some space (bootfarm-edge vdisk gc --store {s} frees " ++
                "what no version needs) and import the image again.",
            .{ store, store },
        ),
        error.Damaged,
        error.NotAManifest,
        error.WrongSignature,
        error.Malformed,
        error.OtherStore,
        error.OtherName,
        => complaint.set(
            "A version in the store {s} is damaged; see bootfarm-edge vdisk list --store {s}.",
            .{ store, store },
        ),
        else => |other| running.call.failStore(other),
    };
}
