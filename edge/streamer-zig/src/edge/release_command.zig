//! `bootfarm-edge verify-release`: checks that a program is a release of this edge's control plane
//! before anybody runs it. The format is that of docs/decisions/0010-edge-installation.md: five
//! lines, and an Ed25519 signature over them. An older release is refused: a man in the middle must
//! not be able to bring back its bugs.

const std = @import("std");
const builtin = @import("builtin");
const base = @import("base");
const core = @import("core");
const options_module = @import("options.zig");
const Terminal = @import("terminal.zig").Terminal;

const Complaint = options_module.Complaint;
const Error = options_module.Error || error{OutOfMemory};
const Ed25519 = base.Ed25519;
const Sha256 = base.Sha256;

const head = "bootfarm-edge-release-v1";
const text_size_max = 512;
const program_size_max = 256 << 20;

const Option = enum { @"--key", @"--release", @"--signature", @"--program", @"--allow-older" };

const Options = struct {
    /// The raw 32 bytes in base64.
    key: []const u8,
    release: []const u8,
    signature: []const u8,
    program: []const u8,
    allow_older: bool,
};

pub const Release = struct { version: []const u8, arch: []const u8, sha256: [32]u8, size: u64 };

pub fn run(init: std.process.Init, arguments: []const [:0]const u8, terminal: *Terminal) u8 {
    var complaint: Complaint = .{};
    const release = verifyFiles(init, arguments, &complaint) catch |err| switch (err) {
        error.Wrong => return terminal.fail("{s}", .{complaint.text()}),
        error.OutOfMemory => return terminal.fail("There is not enough memory.", .{}),
    };
    var buffer: [text_size_max]u8 = undefined;
    terminal.out(std.mem.print(&buffer, "{s}\n", .{release.version}) catch unreachable);
    return 0;
}

fn verifyFiles(
    init: std.process.Init,
    rest: []const [:0]const u8,
    complaint: *Complaint,
) Error!Release {
    const options = try parse(rest, complaint);
    const text = try read(init, options.release, text_size_max, complaint);
    const signature = try read(init, options.signature, text_size_max, complaint);
    const key = core.uplink.key_text.parse(options.key) catch
        return complaint.set("--key is not a release key.", .{});
    const release = verify(
        text,
        std.mem.trim(u8, signature, " \r\n"),
        key,
    ) catch |err| return switch (err) {
        error.SignatureInvalid => complaint.set(
            "The release is not signed by the given release key; do not run it.",
            .{},
        ),
        error.Malformed => complaint.set(
            "{s} does not describe a release of bootfarm-edge.",
            .{options.release},
        ),
    };
    if (!std.mem.eql(u8, release.arch, @tagName(builtin.cpu.arch)))
        return complaint.set("The release is for {s}, and this machine is {t}.", .{
            release.arch, builtin.cpu.arch,
        });
    if (!options.allow_older and isOlder(release.version, base.version)) return complaint.set(
        "The release is {s}, which is older than this program ({s}); add --allow-older to accept it.",
        .{ release.version, base.version },
    );
    const program = try read(init, options.program, program_size_max, complaint);
    var digest: [32]u8 = undefined;
    Sha256.hash(program, &digest, .{});
    if (program.len != release.size or !std.mem.eql(u8, &digest, &release.sha256))
        return complaint.set(
            "{s} is not the program that was released; do not run it.",
            .{options.program},
        );
    return release;
}

fn parse(rest: []const [:0]const u8, complaint: *Complaint) Error!Options {
    var arguments: options_module.Arguments =
        .{ .command = "verify-release", .rest = rest, .complaint = complaint };
    var given: [4]?[]const u8 = @splat(null);
    var allow_older = false;
    while (try arguments.next()) |argument| {
        const option = std.meta.stringToEnum(Option, argument.name) orelse
            return arguments.noOption(argument.name);
        if (option == .@"--allow-older") allow_older = true else {
            given[@backingInt(option)] = try arguments.value(argument.name, argument.value);
        }
    }
    for (given, 0..) |one, index| if (one == null)
        return complaint.set("verify-release needs {t}.", .{
            @as(Option, @fromBackingInt(@as(u3, @intCast(index)))),
        });
    return .{
        .key = given[0].?,
        .release = given[1].?,
        .signature = given[2].?,
        .program = given[3].?,
        .allow_older = allow_older,
    };
}

fn read(
    init: std.process.Init,
    path: []const u8,
    size_max: usize,
    complaint: *Complaint,
) Error![]const u8 {
    const arena = init.arena.allocator();
    return std.Io.Dir.cwd().readFileAlloc(
        init.io,
        path,
        arena,
        .limited(size_max),
    ) catch |err| switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.StreamTooLong => complaint.set("{s} is larger than any release.", .{path}),
        else => complaint.set("{s} cannot be read.", .{path}),
    };
}

/// The result points into `text`.
pub fn verify(
    text: []const u8,
    signature_text: []const u8,
    key: [32]u8,
) error{ SignatureInvalid, Malformed }!Release {
    var raw: [Ed25519.Signature.encoded_length]u8 = undefined;
    const decoder = std.base64.standard.Decoder;
    if ((decoder.calcSizeForSlice(signature_text) catch 0) != raw.len)
        return error.SignatureInvalid;
    decoder.decode(&raw, signature_text) catch return error.SignatureInvalid;
    const public_key = Ed25519.PublicKey.fromBytes(key) catch return error.SignatureInvalid;
    try Ed25519.Signature.fromBytes(raw).verify(&.{text}, public_key);
    var lines = std.mem.splitScalar(u8, std.mem.cutSuffix(u8, text, "\n") orelse
        return error.Malformed, '\n');
    if (!std.mem.eql(u8, lines.first(), head)) return error.Malformed;
    var release: Release = undefined;
    release.version = lines.next() orelse return error.Malformed;
    release.arch = lines.next() orelse return error.Malformed;
    const digest = lines.next() orelse return error.Malformed;
    if (digest.len != 64) return error.Malformed;
    _ = std.fmt.hexToBytes(&release.sha256, digest) catch return error.Malformed;
    release.size = std.fmt.parseInt(u64, lines.next() orelse return error.Malformed, 10) catch
        return error.Malformed;
    if (lines.next() != null) return error.Malformed;
    _ = std.SemanticVersion.parse(release.version) catch return error.Malformed;
    return release;
}

fn isOlder(version: []const u8, than: []const u8) bool {
    const one = std.SemanticVersion.parse(version) catch return false;
    const other = std.SemanticVersion.parse(than) catch return false;
    return one.order(other) == .lt;
}

const testing = std.testing;

test "a release is accepted only with the key that signed it, unchanged" {
    const pair = try Ed25519.KeyPair.generateDeterministic(@splat(9));
    const text = head ++ "\n0.1.0\nx86_64\n" ++ @as([64]u8, @splat('a')) ++ "\n12\n";
    const signature = pair.sign(text);
    var encoded: [88]u8 = undefined;
    _ = std.base64.standard.Encoder.encode(&encoded, &signature.toBytes());
    const key = pair.public_key.toBytes();
    const release = try verify(text, &encoded, key);
    try testing.expectEqualStrings("0.1.0", release.version);
    try testing.expectEqualStrings("x86_64", release.arch);
    try testing.expectEqual(12, release.size);
    try testing.expectEqual(@as([32]u8, @splat(0xaa)), release.sha256);
    const other = try Ed25519.KeyPair.generateDeterministic(@splat(8));
    try testing.expectError(
        error.SignatureInvalid,
        verify(text, &encoded, other.public_key.toBytes()),
    );
    try testing.expectError(error.SignatureInvalid, verify(text ++ "\n", &encoded, key));
    try testing.expectError(error.SignatureInvalid, verify(text, encoded[0..87], key));
}

test "an older release is told from a newer one" {
    try testing.expect(isOlder("0.1.9", "0.1.10"));
    try testing.expect(isOlder("0.2.0-rc.1", "0.2.0"));
    try testing.expect(!isOlder("0.2.0", "0.2.0"));
    try testing.expect(!isOlder("1.0.0", "0.9.9"));
}
