//! What the devices of a version read: a plain file, or a version of the store, whose blocks are found right before they leave.

const store = @import("store");

pub const VersionDisk = union(enum) {
    file: store.StoreFile,
    version: store.OpenVersion,

    /// Bytes; a multiple of 512, not 0.
    pub fn size(disk: *const VersionDisk) u64 {
        return switch (disk.*) {
            .file => |*file| file.size,
            .version => |*version| version.manifest.disk_size,
        };
    }

    /// Good as long as the disk stays where it is.
    pub fn source(disk: *VersionDisk) store.BlockSource {
        return switch (disk.*) {
            .file => |*file| file.source(),
            .version => |*version| version.reader.source(),
        };
    }

    pub fn close(disk: *VersionDisk) void {
        switch (disk.*) {
            .file => |*file| file.close(),
            .version => |*version| version.close(),
        }
    }
};
