//! The signed description of a version: its vDisk, parent, size, root and boot files. A manifest
//! never changes.
//!
//! The signed part is the same on every edge. Behind it is what only this store knows: the location
//! of the root.

const std = @import("std");
const base = @import("base");
const block = @import("../block.zig");
const Files = @import("../files/files.zig");
const node_module = @import("node.zig");
const simulated = @import("../simulated.zig");
const assert = std.debug.assert;
const Ed25519 = base.Ed25519;
const Sha256 = base.Sha256;
const Uuid = base.Uuid;

pub const file_size = block.block_size;
pub const command_line_size_max = 1024;
pub const name_size_max = 64;
pub const note_size_max = 512;
/// 4 PiB: larger than any disk, and far below the point where sums of sizes overflow.
pub const disk_size_max: u64 = 1 << 52;

const magic = "BFMANIF1".*;
/// A manifest without a note is of format 1, which earlier programs read.
const plain_format: u32 = 1;
const noted_format: u32 = 2;
/// Blocks may be in packed units.
const unit_format: u32 = 3;
const signature_prefix = "bootfarm manifest 1";

/// Suffix of a manifest's file in `versions/`, after the version's id.
pub const file_suffix = ".manifest";

pub fn fileName(version: Uuid, into: *Files.Name) []const u8 {
    return std.mem.print(into, "versions/{f}" ++ file_suffix, .{version}) catch unreachable;
}

/// A kernel or an initramfs, identified by its bytes.
pub const BootFile = struct {
    hash: block.Hash,
    /// Bytes; not 0.
    size: u64,
};

pub const Manifest = struct {
    store: Uuid,
    /// Zeros if the edge has no control plane.
    organization: Uuid,
    vdisk: Uuid,
    version: Uuid,
    /// The version that this one was made from; zeros for a base.
    parent: Uuid,
    /// Number among the vDisk's versions, from 1.
    number: u32,
    /// Order in which versions were sealed; a lower pair never replaces a higher one.
    incarnation: u64,
    counter: u64,
    created_unix_ms: u64,
    /// Bytes; a multiple of 512, not 0.
    disk_size: u64,
    root: block.Entry,
    kernel: ?BootFile = null,
    initrd: ?BootFile = null,
    command_line: base.BoundedArray(u8, command_line_size_max) = .empty,
    /// Name of the vDisk where the version was made; for people.
    name: base.BoundedArray(u8, name_size_max) = .empty,
    /// One line about this version; for people.
    note: base.BoundedArray(u8, note_size_max) = .empty,
    /// Its blocks may be in packed units, which earlier programs cannot read.
    has_units: bool = false,

    pub fn blockCount(manifest: *const Manifest) u64 {
        return block.blockCount(manifest.disk_size);
    }

    pub fn rootLevel(manifest: *const Manifest) u8 {
        return node_module.rootLevel(manifest.blockCount());
    }

    pub fn isBase(manifest: *const Manifest) bool {
        return manifest.parent.eql(.zero);
    }
};

/// `NotAManifest`: foreign bytes. `TooNew`: a later format. `Damaged`: bytes were changed.
/// `WrongSignature`: another key sealed it. `Malformed`: signed, but with impossible values.
pub const Error = error{ NotAManifest, TooNew, Damaged, WrongSignature, Malformed };

pub const Bytes = [file_size]u8;

pub fn encode(manifest: *const Manifest, key: Ed25519.KeyPair) Bytes {
    assert(isPossible(manifest));
    var bytes: Bytes = @splat(0);
    var writer: base.ByteWriter = .init(&bytes);
    write(&writer, manifest) catch unreachable;
    const signed = writer.written();
    const signature = sign(signed, key);
    writer.bytes(&signature) catch unreachable;
    writer.int(u64, @bitCast(manifest.root.location)) catch unreachable;
    assert(writer.remaining() >= Sha256.digest_length);
    const checked = bytes[0 .. file_size - Sha256.digest_length];
    Sha256.hash(checked, bytes[checked.len..][0..Sha256.digest_length], .{});
    return bytes;
}

/// Checks and decodes a manifest.
///
/// @param public_key key of the store, as pinned when the store was made
pub fn decode(bytes: *const Bytes, public_key: Ed25519.PublicKey) Error!Manifest {
    if (!std.mem.eql(u8, bytes[0..magic.len], &magic)) return error.NotAManifest;
    const checked = bytes[0 .. file_size - Sha256.digest_length];
    var digest: [Sha256.digest_length]u8 = undefined;
    Sha256.hash(checked, &digest, .{});
    const is_whole = std.mem.eql(u8, &digest, bytes[checked.len..]) or
        simulated.has(.manifest_unchecked);
    if (!is_whole) return error.Damaged;
    var cursor: base.Cursor = .init(checked);
    cursor.skip(magic.len) catch unreachable;
    const format = cursor.int(u32) catch unreachable;
    if (format > unit_format) return error.TooNew;
    var manifest = read(&cursor, format) catch return error.Malformed;
    const signed = bytes[0..cursor.position];
    const signature = cursor.array(Ed25519.Signature.encoded_length) catch return error.Malformed;
    if (!isSigned(signed, signature, public_key)) return error.WrongSignature;
    manifest.root.location = @bitCast(cursor.int(u64) catch return error.Malformed);
    if (!isPossible(&manifest)) return error.Malformed;
    return manifest;
}

fn sign(signed: []const u8, key: Ed25519.KeyPair) [Ed25519.Signature.encoded_length]u8 {
    var message: [signature_prefix.len + file_size]u8 = undefined;
    return simulated.sign(prefixed(signed, &message), &key);
}

fn isSigned(signed: []const u8, signature: *const [64]u8, key: Ed25519.PublicKey) bool {
    if (simulated.has(.manifest_unchecked)) return true;
    var message: [signature_prefix.len + file_size]u8 = undefined;
    return simulated.isSigned(prefixed(signed, &message), signature, key);
}

/// The prefix keeps other signatures of this key from passing as a manifest.
fn prefixed(signed: []const u8, into: *[signature_prefix.len + file_size]u8) []const u8 {
    into[0..signature_prefix.len].* = signature_prefix.*;
    @memcpy(into[signature_prefix.len..][0..signed.len], signed);
    return into[0 .. signature_prefix.len + signed.len];
}

fn write(writer: *base.ByteWriter, manifest: *const Manifest) base.ByteWriter.Error!void {
    try writer.bytes(&magic);
    const is_noted = manifest.note.count > 0 or manifest.has_units;
    const noted: u32 = if (is_noted) noted_format else plain_format;
    try writer.int(u32, if (manifest.has_units) unit_format else noted);
    for ([_]Uuid{
        manifest.store,
        manifest.organization,
        manifest.vdisk,
        manifest.version,
        manifest.parent,
    }) |id| try writer.bytes(&id.bytes);
    try writer.int(u32, manifest.number);
    for ([_]u64{
        manifest.incarnation,
        manifest.counter,
        manifest.created_unix_ms,
        manifest.disk_size,
    }) |number| try writer.int(u64, number);
    try writer.bytes(&manifest.root.hash);
    for ([_]?BootFile{ manifest.kernel, manifest.initrd }) |file| {
        const given = file orelse BootFile{ .hash = block.zero_hash, .size = 0 };
        try writer.bytes(&given.hash);
        try writer.int(u64, given.size);
    }
    for ([_][]const u8{ manifest.command_line.constSlice(), manifest.name.constSlice() }) |text| {
        try writer.int(u16, @intCast(text.len));
        try writer.bytes(text);
    }
    if (!is_noted) return;
    try writer.int(u16, @intCast(manifest.note.count));
    try writer.bytes(manifest.note.constSlice());
}

fn read(
    cursor: *base.Cursor,
    format: u32,
) (base.Cursor.Error || error{Malformed})!Manifest {
    var manifest: Manifest = undefined;
    inline for (.{ "store", "organization", "vdisk", "version", "parent" }) |field|
        @field(manifest, field) = .fromBytes((try cursor.array(16)).*);
    manifest.number = try cursor.int(u32);
    inline for (.{ "incarnation", "counter", "created_unix_ms", "disk_size" }) |field|
        @field(manifest, field) = try cursor.int(u64);
    manifest.root = .{ .hash = (try cursor.array(32)).*, .location = .none };
    inline for (.{ "kernel", "initrd" }) |field| {
        const hash = (try cursor.array(32)).*;
        const size = try cursor.int(u64);
        @field(manifest, field) = if (size == 0) null else .{ .hash = hash, .size = size };
    }
    inline for (.{ "command_line", "name" }) |field| {
        const text = try cursor.bytes(try cursor.int(u16));
        @field(manifest, field) = @FieldType(Manifest, field).fromSlice(text) catch
            return error.Malformed;
    }
    manifest.note = .empty;
    manifest.has_units = format >= unit_format;
    if (format < noted_format) return manifest;
    const note = try cursor.bytes(try cursor.int(u16));
    if (note.len == 0 and !manifest.has_units) return error.Malformed;
    manifest.note = @TypeOf(manifest.note).fromSlice(note) catch return error.Malformed;
    return manifest;
}

fn isPossible(manifest: *const Manifest) bool {
    if (manifest.disk_size == 0 or manifest.disk_size > disk_size_max) return false;
    if (manifest.disk_size % 512 != 0) return false;
    if (manifest.number == 0) return false;
    if (manifest.version.eql(.zero) or manifest.vdisk.eql(.zero)) return false;
    return manifest.root.isZeros() == std.mem.eql(u8, &manifest.root.hash, &block.zero_hash);
}

/// Describes the problem as the end of a sentence that starts with the manifest's name.
pub fn sentence(problem: Error) []const u8 {
    return switch (problem) {
        error.NotAManifest => "is not a manifest of a version",
        error.TooNew => "is of a later format than this program knows; update bootfarm-edge",
        error.Damaged => "is damaged: its bytes changed after they were written",
        error.WrongSignature => "was not sealed by this store's key",
        error.Malformed => "is signed, but its values are not valid for a version",
    };
}

const testing = std.testing;

fn testManifest() Manifest {
    return .{
        .store = .fromRandom(@splat(1)),
        .organization = .zero,
        .vdisk = .fromRandom(@splat(2)),
        .version = .fromRandom(@splat(3)),
        .parent = .zero,
        .number = 1,
        .incarnation = 0,
        .counter = 1,
        .created_unix_ms = 1,
        .disk_size = 1 << 30,
        .root = .{ .hash = @splat(9), .location = .{ .file = 1, .block = 7 } },
        .kernel = .{ .hash = @splat(4), .size = 9 },
        .command_line = base.BoundedArray(u8, command_line_size_max).fromSlice("quiet splash") catch
            unreachable,
    };
}

test "a manifest is decoded from its bytes unchanged" {
    const key = try Ed25519.KeyPair.generateDeterministic(@splat(1));
    const manifest = testManifest();
    const bytes = encode(&manifest, key);
    const found = try decode(&bytes, key.public_key);
    try testing.expectEqualStrings("quiet splash", found.command_line.constSlice());
    try testing.expectEqual(manifest.root, found.root);
    try testing.expectEqual(manifest.kernel, found.kernel);
    try testing.expectEqual(null, found.initrd);
    try testing.expectEqual(bytes, encode(&found, key));
}

test "a manifest with a note is of the next format, and one without is not" {
    const key = try Ed25519.KeyPair.generateDeterministic(@splat(1));
    var manifest = testManifest();
    try testing.expectEqual(1, encode(&manifest, key)[11]);
    const longest: [note_size_max]u8 = @splat('n');
    for ([_][]const u8{ "Office & drivers", &longest }) |note| {
        manifest.note = @TypeOf(manifest.note).fromSlice(note) catch unreachable;
        manifest.command_line.count = if (note.len == note_size_max) command_line_size_max else 5;
        const bytes = encode(&manifest, key);
        try testing.expectEqual(2, bytes[11]);
        const found = try decode(&bytes, key.public_key);
        try testing.expectEqualStrings(note, found.note.constSlice());
        try testing.expectEqual(bytes, encode(&found, key));
    }
}

test "a manifest with packed units is of the format after that, with or without a note" {
    const key = try Ed25519.KeyPair.generateDeterministic(@splat(1));
    var manifest = testManifest();
    manifest.has_units = true;
    for ([_][]const u8{ "", "Office & drivers" }) |note| {
        manifest.note = @TypeOf(manifest.note).fromSlice(note) catch unreachable;
        const bytes = encode(&manifest, key);
        try testing.expectEqual(3, bytes[11]);
        const found = try decode(&bytes, key.public_key);
        try testing.expect(found.has_units);
        try testing.expectEqualStrings(note, found.note.constSlice());
        try testing.expectEqual(bytes, encode(&found, key));
    }
}

test "a manifest of another key, another kind or a later format is reported as such" {
    const key = try Ed25519.KeyPair.generateDeterministic(@splat(1));
    const other = try Ed25519.KeyPair.generateDeterministic(@splat(2));
    const manifest = testManifest();
    var bytes = encode(&manifest, key);
    try testing.expectError(error.WrongSignature, decode(&bytes, other.public_key));
    bytes[11] = 4;
    resum(&bytes);
    try testing.expectError(error.TooNew, decode(&bytes, key.public_key));
    bytes[0] = 'X';
    try testing.expectError(error.NotAManifest, decode(&bytes, key.public_key));
}

test "a manifest that was changed and given a new checksum has a wrong signature" {
    const key = try Ed25519.KeyPair.generateDeterministic(@splat(1));
    var bytes = encode(&testManifest(), key);
    bytes[magic.len + 4] ^= 1;
    try testing.expectError(error.Damaged, decode(&bytes, key.public_key));
    resum(&bytes);
    try testing.expectError(error.WrongSignature, decode(&bytes, key.public_key));
}

test "every flipped bit of a manifest is found" {
    const key = try Ed25519.KeyPair.generateDeterministic(@splat(1));
    var bytes = encode(&testManifest(), key);
    for (0..bytes.len * 8) |bit| {
        const mask = @as(u8, 1) << @intCast(bit % 8);
        bytes[bit / 8] ^= mask;
        if (decode(&bytes, key.public_key)) |_|
            return error.TestUnexpectedResult
        else |err| switch (err) {
            error.Damaged, error.NotAManifest => {},
            else => return err,
        }
        bytes[bit / 8] ^= mask;
    }
}

/// Signs any values.
fn encodeAny(manifest: *const Manifest, key: Ed25519.KeyPair) Bytes {
    var bytes: Bytes = @splat(0);
    var writer: base.ByteWriter = .init(&bytes);
    write(&writer, manifest) catch unreachable;
    const signature = sign(writer.written(), key);
    writer.bytes(&signature) catch unreachable;
    writer.int(u64, @bitCast(manifest.root.location)) catch unreachable;
    resum(&bytes);
    return bytes;
}

test "signed values that no version can have are malformed, and their limits are accepted" {
    const key = try Ed25519.KeyPair.generateDeterministic(@splat(1));
    const Case = struct { is_possible: bool, field: union(enum) {
        disk_size: u64,
        number: u32,
        version: Uuid,
        vdisk: Uuid,
        root: block.Entry,
    } };
    const place: block.Location = .{ .file = 1, .block = 0 };
    for ([_]Case{
        .{ .is_possible = false, .field = .{ .disk_size = 0 } },
        .{ .is_possible = false, .field = .{ .disk_size = 511 } },
        .{ .is_possible = true, .field = .{ .disk_size = 512 } },
        .{ .is_possible = false, .field = .{ .disk_size = 513 } },
        .{ .is_possible = false, .field = .{ .disk_size = disk_size_max - 1 } },
        .{ .is_possible = true, .field = .{ .disk_size = disk_size_max } },
        .{ .is_possible = false, .field = .{ .disk_size = disk_size_max + 512 } },
        .{ .is_possible = false, .field = .{ .number = 0 } },
        .{ .is_possible = true, .field = .{ .number = 1 } },
        .{ .is_possible = false, .field = .{ .version = .zero } },
        .{ .is_possible = false, .field = .{ .vdisk = .zero } },
        .{ .is_possible = true, .field = .{ .root = .zeros } },
        .{ .is_possible = false, .field = .{ .root = .{ .hash = @splat(1), .location = .none } } },
        .{
            .is_possible = false,
            .field = .{ .root = .{ .hash = block.zero_hash, .location = place } },
        },
    }) |case| {
        var manifest = testManifest();
        switch (case.field) {
            inline else => |value, name| @field(manifest, @tagName(name)) = value,
        }
        const bytes = encodeAny(&manifest, key);
        if (case.is_possible)
            _ = try decode(&bytes, key.public_key)
        else
            try testing.expectError(error.Malformed, decode(&bytes, key.public_key));
    }
}

test "texts that are too long for a manifest are malformed" {
    const key = try Ed25519.KeyPair.generateDeterministic(@splat(1));
    var manifest = testManifest();
    manifest.command_line = .empty;
    manifest.kernel = null;
    const at = magic.len + 4 + 5 * 16 + 4 + 4 * 8 + 32 + 2 * 40;
    for ([_]u16{ command_line_size_max, command_line_size_max + 1 }) |size| {
        var bytes: Bytes = @splat(0);
        var writer: base.ByteWriter = .init(&bytes);
        write(&writer, &manifest) catch unreachable;
        std.mem.writeInt(u16, bytes[at..][0..2], size, .big);
        @memset(bytes[at + 2 ..][0..size], 'x');
        const end = at + 2 + size + 2;
        std.mem.writeInt(u16, bytes[end - 2 ..][0..2], 0, .big);
        bytes[end..][0..64].* = sign(bytes[0..end], key);
        std.mem.writeInt(u64, bytes[end + 64 ..][0..8], @bitCast(manifest.root.location), .big);
        resum(&bytes);
        if (size <= command_line_size_max) {
            const found = try decode(&bytes, key.public_key);
            try testing.expectEqual(size, found.command_line.constSlice().len);
            try testing.expectEqual(manifest.root.location, found.root.location);
        } else try testing.expectError(error.Malformed, decode(&bytes, key.public_key));
    }
}

fn resum(bytes: *Bytes) void {
    const size = file_size - Sha256.digest_length;
    Sha256.hash(bytes[0..size], bytes[size..][0..Sha256.digest_length], .{});
}
