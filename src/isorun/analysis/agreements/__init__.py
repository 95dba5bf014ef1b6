"""Do metrics, devices or environments agree, and how many digits does the noise support?"""
