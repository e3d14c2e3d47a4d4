//! A store: a directory of an edge that holds versions of vDisks (docs/reference/vdisk-store.md).
//! Opening reads a few hundred bytes; everything else is read on demand.

const std = @import("std");
const base = @import("base");
const Appender = @import("appender.zig");
const block = @import("../block.zig");
const counter_file = @import("counter_file.zig");
const FileSet = @import("file_set.zig");
const former_versions = @import("former_versions.zig");
const copy_names = @import("../layer_copies/names.zig");
const device_layers = @import("../layers/device_layers.zig");
const Files = @import("files.zig");
const manifest_module = @import("../tree/manifest.zig");
const NodeCache = @import("../tree/node_cache.zig");
const pending_seal = @import("../pending_seal.zig");
const simulated = @import("../simulated.zig");
const UnitCache = @import("../unit_cache.zig");
const VersionReader = @import("../version_reader.zig");
const assert = std.debug.assert;
const Ed25519 = base.Ed25519;
const Sha256 = base.Sha256;
const Uuid = base.Uuid;

const Handle = Files.Handle;
const Manifest = manifest_module.Manifest;

const head_name = "bootfarm-store";
const lock_name = "lock";
pub const key_name = "store-key";
const dirs = [_][]const u8{
    "extents",
    "nodes",
    "versions",
    "boot-bundles",
    "imports",
    "layers",
    "profiles",
    "file-maps",
};
const magic = "BFSTORE1".*;
/// A store without packed units is of format 1, which earlier programs read.
const plain_format: u32 = 1;
pub const unit_format: u32 = 2;
const head_size = 8 + 4 + 16 + 16 + 32 + Sha256.digest_length;

/// `NotAStore`: a directory without our head. `NotEmpty`: it holds foreign files. `HeadDamaged`,
/// `KeyDamaged`: the files that every manifest is checked against. `Locked`: another process
/// changes the store.
pub const Error = Files.Error || error{
    NotAStore,
    NotEmpty,
    HeadDamaged,
    KeyDamaged,
    TooNew,
    Locked,
};

/// How often the manifest of a version may change while it is opened.
const opens_max = 100;

pub const VersionError = Files.Error || manifest_module.Error || error{ OtherStore, OtherName };

pub const Options = struct {
    cache_nodes: u32 = NodeCache.nodes_default,
    /// Unpacked, of 32 KiB each.
    cache_units: u32 = UnitCache.units_default,
    file_size_max: u64 = Appender.file_size_max_default,
};

pub const StoreOptions = struct {
    id: Uuid,
    organization: Uuid = .zero,
    /// Seed of the store's key.
    seed: [32]u8,
    /// Allows foreign files in the directory; they are left alone.
    beside_files: bool = false,
};

const Head = struct {
    format: u32,
    id: Uuid,
    organization: Uuid,
    public_key: Ed25519.PublicKey,

    fn encode(head: *const Head) [head_size]u8 {
        var bytes: [head_size]u8 = undefined;
        var writer: base.ByteWriter = .init(&bytes);
        writer.bytes(&magic) catch unreachable;
        writer.int(u32, head.format) catch unreachable;
        writer.bytes(&head.id.bytes) catch unreachable;
        writer.bytes(&head.organization.bytes) catch unreachable;
        writer.bytes(&head.public_key.toBytes()) catch unreachable;
        Sha256.hash(writer.written(), bytes[writer.position..][0..Sha256.digest_length], .{});
        return bytes;
    }
};

pub const Store = struct {
    files: Files,
    id: Uuid,
    organization: Uuid,
    public_key: Ed25519.PublicKey,
    options: Options,
    data: FileSet,
    nodes: FileSet,
    cache: NodeCache,
    units: UnitCache,
    /// Of the head. From the second on, versions may have packed units.
    format: u32,

    /// Makes a store in an empty directory, or resumes an interrupted attempt: the head is written
    /// last. Throws `Exists` if there is a store already.
    pub fn make(files: Files, made: StoreOptions) Error!void {
        if (files.open(head_name, .read)) |handle| {
            files.close(handle);
            return error.Exists;
        } else |err| if (err != error.NotFound) return err;
        if (!made.beside_files) try checkEmpty(files);
        for (dirs) |dir| files.makeDir(dir) catch |err| if (err != error.Exists) return err;
        const key = Ed25519.KeyPair.generateDeterministic(made.seed) catch return error.KeyDamaged;
        try files.replace(lock_name, "");
        try files.replace(key_name, &checked(made.seed));
        const head: Head = .{
            .format = plain_format,
            .id = made.id,
            .organization = made.organization,
            .public_key = key.public_key,
        };
        try files.replace(head_name, &head.encode());
    }

    /// Opens a directory that a copy of this store is made in, and makes what it needs. It is no
    /// store before `finishCopy`, and nobody changes it before `allowChanges`.
    pub fn openCopy(
        store: *const Store,
        gpa: std.mem.Allocator,
        files: Files,
    ) (Files.Error || error{OutOfMemory})!Store {
        for (dirs) |dir| files.makeDir(dir) catch |err| if (err != error.Exists) return err;
        try files.syncDir("");
        var cache: NodeCache = try .init(gpa, store.options.cache_nodes);
        errdefer cache.deinit(gpa);
        var copy = store.*;
        copy.files = files;
        copy.data = .init(files, .extents);
        copy.nodes = .init(files, .nodes);
        copy.cache = cache;
        copy.units = try .init(gpa, store.options.cache_units);
        return copy;
    }

    /// Gives a copy the head that makes it a store.
    pub fn finishCopy(copy: *const Store) Files.Error!void {
        const head: Head = .{
            .format = copy.format,
            .id = copy.id,
            .organization = copy.organization,
            .public_key = copy.public_key,
        };
        try copy.files.replace(head_name, &head.encode());
    }

    /// Lets commands change a store that was made as a copy.
    pub fn allowChanges(copy: *const Store) Files.Error!void {
        try copy.files.replace(lock_name, "");
    }

    pub fn open(
        gpa: std.mem.Allocator,
        files: Files,
        options: Options,
    ) (Error || error{OutOfMemory})!Store {
        const handle = files.open(head_name, .read) catch |err|
            return if (err == error.NotFound) error.NotAStore else err;
        defer files.close(handle);
        var bytes: [head_size]u8 = undefined;
        if (!try files.readWhole(handle, &bytes, 0)) return error.HeadDamaged;
        if (!std.mem.eql(u8, bytes[0..magic.len], &magic)) return error.NotAStore;
        if (!isChecked(&bytes)) return error.HeadDamaged;
        var cursor: base.Cursor = .init(bytes[magic.len..]);
        const found_format = cursor.int(u32) catch unreachable;
        if (found_format > unit_format) return error.TooNew;
        const id: Uuid = .fromBytes((cursor.array(16) catch unreachable).*);
        const organization: Uuid = .fromBytes((cursor.array(16) catch unreachable).*);
        const public_key = Ed25519.PublicKey.fromBytes((cursor.array(32) catch unreachable).*) catch
            return error.HeadDamaged;
        var cache: NodeCache = try .init(gpa, options.cache_nodes);
        errdefer cache.deinit(gpa);
        return .{
            .files = files,
            .format = found_format,
            .id = id,
            .organization = organization,
            .public_key = public_key,
            .options = options,
            .data = .init(files, .extents),
            .nodes = .init(files, .nodes),
            .cache = cache,
            .units = try .init(gpa, options.cache_units),
        };
    }

    pub fn close(store: *Store, gpa: std.mem.Allocator) void {
        store.data.deinit();
        store.nodes.deinit();
        store.cache.deinit(gpa);
        store.units.deinit(gpa);
        store.* = undefined;
    }

    pub fn reading(store: *Store) VersionReader.ReadContext {
        return .{
            .data = &store.data,
            .nodes = &store.nodes,
            .cache = &store.cache,
            .units = &store.units,
        };
    }

    /// Opens a version for reading. It cannot be deleted until it is closed.
    pub fn openVersion(store: *Store, id: Uuid) (VersionError || error{Locked})!OpenVersion {
        var name: Files.Name = undefined;
        for (0..opens_max) |_| {
            const handle = try store.files.open(manifest_module.fileName(id, &name), .read);
            errdefer store.files.close(handle);
            const is_locked = try store.files.tryLock(handle, false);
            // A version deleted between the two calls is open but has no name; one that was packed
            // again has another manifest, and nothing of the former one may be left.
            if (!try store.isCurrent(handle, id)) {
                store.files.close(handle);
                continue;
            }
            if (!is_locked) return error.Locked;
            const found = try store.readManifest(handle, id);
            return .{ .store = store, .handle = handle, .manifest = found, .reader = .{
                .reading = store.reading(),
                .root = found.root,
                .root_level = found.rootLevel(),
                .disk_size = found.disk_size,
            } };
        }
        return error.Locked;
    }

    fn isCurrent(store: *Store, handle: Handle, id: Uuid) Files.Error!bool {
        var name: Files.Name = undefined;
        var bytes: [2]manifest_module.Bytes = undefined;
        const now = try store.files.open(manifest_module.fileName(id, &name), .read);
        defer store.files.close(now);
        const sizes = .{
            try store.files.read(handle, &bytes[0], 0),
            try store.files.read(now, &bytes[1], 0),
        };
        return std.mem.eql(u8, bytes[0][0..sizes[0]], bytes[1][0..sizes[1]]);
    }

    /// Reads the manifest of a version without opening it.
    pub fn manifestOf(store: *Store, id: Uuid) VersionError!Manifest {
        var name: Files.Name = undefined;
        const handle = try store.files.open(manifest_module.fileName(id, &name), .read);
        defer store.files.close(handle);
        return store.readManifest(handle, id);
    }

    pub fn readManifest(store: *Store, handle: Handle, id: Uuid) VersionError!Manifest {
        var bytes: manifest_module.Bytes = undefined;
        if (!try store.files.readWhole(handle, &bytes, 0)) return error.Damaged;
        const found = try manifest_module.decode(&bytes, store.public_key);
        if (!found.store.eql(store.id)) return error.OtherStore;
        // A manifest under another's name would be served in its place.
        if (!found.version.eql(id)) return error.OtherName;
        return found;
    }

    /// Returns the version with the least id above `above`; ids are ordered by their text.
    pub fn nextVersion(store: *Store, above: ?Uuid) Files.Error!?Uuid {
        var name: Files.Name = undefined;
        var at_buffer: Files.Name = undefined;
        var at: []const u8 = if (above) |id| baseName(id, &at_buffer) else "";
        while (try store.files.nextName("versions", at, &name)) |found| {
            @memcpy(at_buffer[0..found.len], found);
            at = at_buffer[0..found.len];
            const text = std.mem.cutSuffix(u8, found, manifest_module.file_suffix) orelse continue;
            return Uuid.parse(text) catch continue;
        }
        return null;
    }

    /// Takes the change lock, which one process holds at a time, and finishes what a crash
    /// interrupted. `RecordDamaged`: the record of the pending change cannot be read.
    pub fn lockForChange(store: *Store) (Files.Error || error{ Locked, RecordDamaged })!Change {
        const handle = try store.files.open(lock_name, .write);
        errdefer store.files.close(handle);
        if (!try store.files.tryLock(handle, true)) return error.Locked;
        // The effects of a killed process are visible but may not be durable; this process is about
        // to build on them.
        if (!simulated.has(.names_taken_unsynced)) {
            for ([_][]const u8{ "", "extents", "nodes", "versions", "imports" }) |dir|
                try store.files.syncDir(dir);
        }
        try pending_seal.recover(store.files);
        return .{ .store = store, .lock = handle };
    }
};

pub const OpenVersion = struct {
    store: *Store,
    handle: Handle,
    manifest: Manifest,
    reader: VersionReader,

    pub fn close(version: *OpenVersion) void {
        version.store.files.close(version.handle);
        version.* = undefined;
    }
};

/// The change lock. Each step leaves the old state or the new one, whenever it is interrupted.
pub const Change = struct {
    store: *Store,
    lock: Handle,

    pub fn end(change: *Change) void {
        change.store.files.close(change.lock);
        change.* = undefined;
    }

    /// Makes the store one whose versions may have packed units; earlier programs refuse it from
    /// then on. Comes before any unit is written.
    pub fn allowUnits(change: *Change) Files.Error!void {
        const store = change.store;
        if (store.format >= unit_format) return;
        const head: Head = .{
            .format = unit_format,
            .id = store.id,
            .organization = store.organization,
            .public_key = store.public_key,
        };
        try store.files.replace(head_name, &head.encode());
        store.format = unit_format;
    }

    /// Commits a version durably. Its nodes and blocks must be synced before. Throws `Exists`: a
    /// version never changes.
    pub fn commit(change: *Change, made: *const Manifest) Error!void {
        const store = change.store;
        assert(made.store.eql(store.id));
        var name: Files.Name = undefined;
        if (store.files.open(manifest_module.fileName(made.version, &name), .read)) |handle| {
            store.files.close(handle);
            return error.Exists;
        } else |err| if (err != error.NotFound) return err;
        const bytes = manifest_module.encode(made, try change.key());
        try store.files.replace(manifest_module.fileName(made.version, &name), &bytes);
    }

    /// Gives a version, whose bytes are the same, other places. Its nodes and blocks must be synced
    /// before. Whoever has it open reads at the former places.
    pub fn replace(change: *Change, made: *const Manifest) Error!void {
        const files = change.store.files;
        var name: Files.Name = undefined;
        const bytes = manifest_module.encode(made, try change.key());
        if (!simulated.has(.former_is_freed)) try former_versions.keep(files, made.version);
        try files.replace(manifest_module.fileName(made.version, &name), &bytes);
        _ = try former_versions.drop(files, made.version);
    }

    /// Throws `Locked` while a process has the version open, `Needed` while a private image is
    /// above it. The garbage collection frees its blocks.
    pub fn delete(change: *Change, id: Uuid) (Files.Error || error{ Locked, Needed })!void {
        const files = change.store.files;
        if (try device_layers.privateAbove(files, id) != null) return error.Needed;
        if (try former_versions.drop(files, id)) return error.Locked;
        var name: Files.Name = undefined;
        const handle = try files.open(manifest_module.fileName(id, &name), .read);
        defer files.close(handle);
        if (!try files.tryLock(handle, true)) return error.Locked;
        try files.remove(manifest_module.fileName(id, &name));
        try files.syncDir("versions");
    }

    /// Returns a counter higher than that of every version that is or was in the store; it is never
    /// used again. An unreadable manifest does not matter if the store has recorded the highest
    /// counter; otherwise its error is thrown.
    pub fn nextCounter(change: *Change) VersionError!u64 {
        var counter = try change.highestCounter();
        if (!simulated.has(.counter_stands)) counter +|= 1;
        // Recorded before any version has it.
        try counter_file.write(change.store.files, counter);
        return counter;
    }

    /// Records the counter of a version that another store has made; no version that is made here
    /// from now on has it.
    pub fn takeCounter(change: *Change, counter: u64) VersionError!u64 {
        if (counter > try change.highestCounter())
            try counter_file.write(change.store.files, counter);
        return counter;
    }

    /// Highest counter of all versions that are or were in the store.
    pub fn highestCounter(change: *Change) VersionError!u64 {
        const store = change.store;
        const kept = try counter_file.read(store.files);
        var counter: u64 = kept orelse 0;
        var id: ?Uuid = null;
        while (try store.nextVersion(id)) |found| {
            id = found;
            const other = store.manifestOf(found) catch |err| switch (err) {
                error.NotAManifest,
                error.TooNew,
                error.Damaged,
                error.WrongSignature,
                error.Malformed,
                error.OtherStore,
                error.OtherName,
                => {
                    if (kept == null) return err;
                    continue;
                },
                else => return err,
            };
            counter = @max(counter, other.counter);
        }
        return counter;
    }

    /// The store's signing key.
    pub fn key(change: *Change) Error!Ed25519.KeyPair {
        const files = change.store.files;
        const handle = try files.open(key_name, .read);
        defer files.close(handle);
        var bytes: [32 + Sha256.digest_length]u8 = undefined;
        if (!try files.readWhole(handle, &bytes, 0) or !isChecked(&bytes)) return error.KeyDamaged;
        const pair = simulated.keyPairOf(bytes[0..32]) orelse return error.KeyDamaged;
        const is_ours =
            std.mem.eql(u8, &pair.public_key.toBytes(), &change.store.public_key.toBytes());
        return if (is_ours) pair else error.KeyDamaged;
    }
};

fn baseName(id: Uuid, into: *Files.Name) []const u8 {
    return std.mem.print(into, "{f}" ++ manifest_module.file_suffix, .{id}) catch unreachable;
}

/// Returns whether a name in the store's directory belongs to the store.
pub fn isOwn(name: []const u8) bool {
    const files_of_store = [_][]const u8{
        head_name,
        lock_name,
        key_name,
        counter_file.name,
        "sealing",
        "lineage",
        copy_names.parent,
    };
    for (dirs ++ files_of_store) |own|
        if (std.mem.eql(u8, std.mem.cutSuffix(u8, name, ".new") orelse name, own)) return true;
    return false;
}

/// An interrupted `make` leaves files that are ours.
fn checkEmpty(files: Files) Error!void {
    var name: Files.Name = undefined;
    var at: []const u8 = "";
    const ours = dirs ++ [_][]const u8{
        lock_name,
        key_name,
        lock_name ++ ".new",
        key_name ++ ".new",
        head_name ++ ".new",
    };
    while (try files.nextName("", at, &name)) |found| {
        at = found;
        for (ours) |known| {
            if (std.mem.eql(u8, found, known)) break;
        } else return error.NotEmpty;
    }
}

fn checked(bytes: [32]u8) [32 + Sha256.digest_length]u8 {
    var all: [32 + Sha256.digest_length]u8 = undefined;
    all[0..32].* = bytes;
    Sha256.hash(&bytes, all[32..], .{});
    return all;
}

fn isChecked(bytes: []const u8) bool {
    const size = bytes.len - Sha256.digest_length;
    var digest: [Sha256.digest_length]u8 = undefined;
    Sha256.hash(bytes[0..size], &digest, .{});
    return std.mem.eql(u8, &digest, bytes[size..]);
}
