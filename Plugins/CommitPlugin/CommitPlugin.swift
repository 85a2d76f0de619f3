// SPDX-License-Identifier: Apache-2.0

import Foundation
import PackagePlugin

/// Gives a target the constant `buildCommit`, see scripts/commit.
@main struct CommitPlugin: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) -> [Command] {
        let output = context.pluginWorkDirectoryURL.appending(path: "Generated")
        let script = context.package.directoryURL.appending(path: "scripts/commit")
        return [
            .prebuildCommand(
                displayName: "The commit that is built",
                executable: URL(fileURLWithPath: "/bin/sh"),
                arguments: [script.path, output.path], outputFilesDirectory: output)
        ]
    }
}
