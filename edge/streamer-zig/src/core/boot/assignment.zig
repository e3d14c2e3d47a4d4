//! What a device was assigned to boot.

const base = @import("base");
const LocalDisk = @import("../target/local_disk_order.zig").LocalDisk;

/// The assignment of a boot, made at its start or chosen in its menu; it stays for this boot,
/// whatever the policy says later.
pub const Assignment = struct {
    version_id: base.Uuid,
    vdisk_id: ?base.Uuid = null,
    device_id: ?base.Uuid = null,
    /// False for a disk named on the command line: its made-up ids are not reported.
    managed: bool = false,
    /// This device writes the version, which is in maintenance.
    writes: bool = false,
    /// Writes go to the device's memory first, then to its local disk.
    local_disk: ?LocalDisk = null,
    loader_files: LoaderFiles = .{},
    /// The boot program set chosen for the device; empty: the edge's own.
    program_set: base.UntrustedText = .empty,
};

pub const LoaderFile = enum { script, kernel, initrd, other };

/// The files that end the loader phase once all of them are delivered; none: only the first disk
/// read ends it.
pub const LoaderFiles = packed struct(u8) {
    kernel: bool = false,
    initrd: bool = false,
    _: u6 = 0,

    pub fn with(files: LoaderFiles, file: LoaderFile) LoaderFiles {
        var result = files;
        switch (file) {
            .kernel => result.kernel = true,
            .initrd => result.initrd = true,
            .script, .other => {},
        }
        return result;
    }

    pub fn contains(files: LoaderFiles, others: LoaderFiles) bool {
        return toInt(files) & toInt(others) == toInt(others);
    }

    pub fn toInt(files: LoaderFiles) u8 {
        return @bitCast(files);
    }
};
